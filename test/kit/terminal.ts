/** Runs commands on a terminal, as people do. */
import { expect } from "bun:test";
import { type CliOptions, environment, signalbox } from "./cli.ts";
import { onCleanup, temporaryFolder } from "./setup.ts";

export const CTRL_C = "\x03";

interface TerminalOptions extends Omit<CliOptions, "stdin" | "detached"> {
  readonly cols?: number;
}

export function startOnTerminal(args: readonly string[], options: TerminalOptions = {}) {
  let shown = "";
  const decoder = new TextDecoder();
  const child = Bun.spawn([...(options.program ?? signalbox), ...args], {
    cwd: options.cwd ?? temporaryFolder(),
    env: { ...environment(options), TERM: "xterm" },
    terminal: {
      cols: options.cols ?? 80,
      rows: 24,
      data: (_, bytes) => void (shown += decoder.decode(bytes, { stream: true })),
    },
  });
  onCleanup(async () => {
    child.kill("SIGKILL");
    await child.exited;
    child.terminal?.close();
  });
  return {
    /** Resolves when this has been shown, with all up to it; `after` so many characters. */
    showed: async (text: RegExp, after = 0): Promise<string> => {
      for (;;) {
        const found = text.exec(shown.slice(after));
        if (found !== null) return found.input.slice(0, found.index + found[0].length);
        if (child.exitCode !== null || child.signalCode !== null) {
          throw new Error(`It ended without ${text}:\n${shown}`);
        }
        await Bun.sleep(5);
      }
    },
    press: (keys: string) => child.terminal?.write(keys),
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    /** Resolves with the exit code and all that was shown. */
    ended: async () => ({ code: await child.exited, shown }),
  };
}

/** Runs a command that must succeed; returns what it showed. */
export async function onTerminal(
  args: readonly string[],
  options?: TerminalOptions,
): Promise<string> {
  const { code, shown } = await startOnTerminal(args, options).ended();
  expect({ code, shown }).toEqual({ code: 0, shown });
  return shown.replaceAll("\r\n", "\n");
}
