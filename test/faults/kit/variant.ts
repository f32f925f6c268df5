/** Copies of the source with one text replaced: a defence taken out, or a limit that is reached sooner. */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { sourceFolder } from "../../kit/cli.ts";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";

export interface Edit {
  /** Below `src/`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export function edit(file: string, find: string, replace: string): Edit {
  return { file, find, replace };
}

/** A copy of the source under test, for `program`. Throws unless each text is in its file exactly once. */
export function variantOf(...edits: readonly Edit[]): readonly string[] {
  const root = dirname(sourceFolder);
  const copy = temporaryFolder();
  cpSync(sourceFolder, join(copy, "src"), { recursive: true });
  for (const name of ["schema.sql", "schema.postgresql.sql", "package.json", "clients"]) {
    cpSync(join(root, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  for (const { file, find, replace } of edits) {
    const path = join(copy, "src", file);
    const parts = readFileSync(path, "utf8").split(find);
    if (parts.length !== 2) {
      throw new Error(`src/${file} has the text "${find}" ${parts.length - 1} times, not once`);
    }
    writeFileSync(path, parts.join(replace));
  }
  return [process.execPath, join(copy, "src", "main.ts")];
}

/** Starts a checkpoint after so many pages of the log, so that a short run has many. */
export function checkpointingAfter(pages: number): Edit {
  const constant = "CHECKPOINT_PAGES = ";
  return edit("store/sqlite/append/checkpointer.ts", `${constant}1_024`, `${constant}${pages}`);
}

export interface TestName {
  /** Below the project. */
  readonly file: string;
  /** The title, or the beginning of it. */
  readonly title: string;
}

/** A test that still waits after this is killed, and counts as failed. */
const TEST_MS_MAX = 180_000;

/**
 * Runs one test at small scale against a program of {@link variantOf}. `preload`: a library for the
 * servers and commands that it starts.
 */
export async function runTest(
  { file, title }: TestName,
  [, main = ""]: readonly string[],
  preload?: string,
): Promise<{ code: number; output: string }> {
  const { FAULTS: _, ...env } = process.env;
  const pattern = title.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  const child = Bun.spawn([process.execPath, "test", file, "-t", pattern], {
    cwd: resolve(import.meta.dir, "../../.."),
    env: {
      ...env,
      SIGNALBOX_TEST_SOURCE: dirname(main),
      ...(preload === undefined ? {} : { SIGNALBOX_TEST_PRELOAD: preload }),
    },
    // A process group of its own, so that its servers end with it.
    detached: true,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const end = (): void => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL");
  };
  const timer = setTimeout(end, TEST_MS_MAX);
  onCleanup(end);
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  clearTimeout(timer);
  return { code: await child.exited, output: stdout + stderr };
}
