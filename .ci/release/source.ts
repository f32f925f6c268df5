/** What a release is made of. */
import { run } from "./staging.ts";

export interface Source {
  readonly commit: string;
  /** False if files differ from the commit. */
  readonly isClean: boolean;
  /** Epoch seconds: the time of everything that is packed. */
  readonly timeS: number;
}

/** Throws if the commit has a tag of another version. */
export async function readSource(version: string): Promise<Source> {
  const [commit, commitTime, changes, tags] = await Promise.all([
    git("rev-parse", "HEAD"),
    git("log", "-1", "--format=%ct"),
    git("status", "--porcelain"),
    git("tag", "--points-at", "HEAD", "v*"),
  ]);
  if (tags !== "" && !tags.split("\n").includes(`v${version}`)) {
    throw new Error(
      `The commit is tagged ${tags}, and package.json says ${version}: correct one of them.`,
    );
  }
  const timeS = Number(process.env["SOURCE_DATE_EPOCH"] ?? commitTime);
  return { commit, isClean: changes === "", timeS };
}

async function git(...args: string[]): Promise<string> {
  return new TextDecoder().decode(await run(["git", ...args])).trim();
}
