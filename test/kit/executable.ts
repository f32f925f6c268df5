/** Builds the executable as `bun run build` does. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const repository = resolve(import.meta.dir, "../..");

/**
 * Returns its path, in a folder that every user can read and that is removed when the tests end.
 * `test/run.ts` builds it once for all files.
 */
export async function buildExecutable(): Promise<string> {
  const built = process.env["SIGNALBOX_TEST_EXECUTABLE"];
  if (built !== undefined) return built;
  const folder = mkdtempSync(join(tmpdir(), "signalbox-build-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  const executable = join(folder, "signalbox");
  const target = `bun-linux-${process.arch}`;
  const build = Bun.spawn(
    [process.execPath, "build.ts", "--outfile", executable, "--target", target],
    { cwd: repository, stdout: "pipe", stderr: "pipe" },
  );
  const output =
    (await new Response(build.stdout).text()) + (await new Response(build.stderr).text());
  if ((await build.exited) !== 0) throw new Error(output);
  return executable;
}
