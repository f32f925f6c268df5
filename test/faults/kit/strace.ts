/** Records, fails or delays system calls with strace, from the start of a server or for a while. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { signalbox } from "../../kit/cli.ts";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";

/**
 * A program under strace, for `startServe`. `-D` makes strace a grandchild, so that signals and exit
 * codes are the program's own. `--seccomp-bpf` stops only at the named system calls.
 */
export function underStrace(
  options: readonly string[],
  { record = "/dev/null", program = signalbox } = {},
): readonly string[] {
  return ["strace", "-D", "-f", "-qq", "--seccomp-bpf", "-o", record, ...options, ...program];
}

/**
 * Tampers with a running process until `detach` has resolved; it returns how many system calls were
 * changed.
 */
export async function attachStrace(
  pid: number,
  options: readonly string[],
): Promise<{ detach: () => Promise<number> }> {
  const record = join(temporaryFolder(), "strace");
  const child = Bun.spawn(["strace", "-f", "-p", String(pid), "-o", record, ...options], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const detach = async (): Promise<number> => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    await child.exited;
    return readFileSync(record, "latin1").split(/\((?:INJECTED|DELAYED)\)$/m).length - 1;
  };
  onCleanup(detach);
  let said = "";
  const { promise: attached, resolve, reject } = Promise.withResolvers<void>();
  void (async () => {
    for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
      said += chunk;
      // Printed when strace has every thread.
      if (/^strace: Process \d+ attached( with \d+ threads)?$/m.test(said)) resolve();
    }
    reject(new Error(`strace did not attach: ${said}`));
  })();
  await attached;
  return { detach };
}
