/** The programs that the benchmark needs: found or built. */
import { join } from "node:path";
import { run } from "./process.ts";
import { UsageError } from "./usage-error.ts";

const projectFolder = join(import.meta.dir, "..");

/** Paths. */
export interface Tools {
  readonly wrk: string;
  /** The command, to which arguments are added. */
  readonly signalbox: readonly string[];
  /** The same for the server alone, where that is to be profiled; none: as the others. */
  readonly serve?: readonly string[];
  /** Null where it is not installed. */
  readonly perf: string | null;
}

/** Builds into `folder`, so that a build that others are running is left alone. */
export async function readyTools(folder: string): Promise<Tools> {
  const wrk = Bun.which("wrk");
  if (wrk === null) throw new UsageError(missing("wrk", "wrk"));
  const signalbox = join(folder, "signalbox");
  note("building signalbox");
  await run([process.execPath, "build.ts", "--outfile", signalbox], { cwd: projectFolder });
  return {
    wrk,
    signalbox: [signalbox],
    perf: Bun.which("perf"),
  };
}

/** Sources instead of the executable: only so does Bun profile its main thread. */
export const signalboxFromSource: readonly string[] = [
  process.execPath,
  join(projectFolder, "src", "main.ts"),
];

export function missing(program: string, debianPackage: string): string {
  return `${program} is missing; install it with: apt-get install ${debianPackage}`;
}

export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}
