/** Runs one of our own programs for tests. It ends when its stdin does. `prefix`: a command that runs it. */
import { onCleanup } from "./setup.ts";

export function startChild(program: string, options: object, prefix: readonly string[] = []) {
  const child = Bun.spawn([...prefix, process.execPath, program, JSON.stringify(options)], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  onCleanup(async () => {
    if (child.exitCode === null) child.kill("SIGKILL");
    await child.exited;
  });
  return child;
}
