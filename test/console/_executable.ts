/** The console of the executable, started in an empty folder. Passkeys need a name, so browsers call it localhost. */
import { expect } from "bun:test";
import { cli, freePort, type ServeProcess, startServe } from "../kit/cli.ts";
import { buildExecutable } from "../kit/executable.ts";

export interface ExecutableConsole extends ServeProcess {
  readonly consoleUrl: string;
  /** The path of a one-time link to desk `alpha`. */
  readonly invite: (email: string) => Promise<string>;
  /** Runs a command on the server's data, and returns its stdout. */
  readonly command: (...args: string[]) => Promise<string>;
}

export async function startExecutableConsole(): Promise<ExecutableConsole> {
  const program = [await buildExecutable()];
  const port = await freePort();
  const consoleUrl = `http://localhost:${port}`;
  const flags = ["--console-listen", `127.0.0.1:${port}`, "--console-url", consoleUrl];
  const server = await startServe(flags, { program });
  const command = async (...args: string[]): Promise<string> => {
    const result = await cli([...args, "--data", server.dataDir], { program });
    expect([result.code, result.stderr]).toEqual([0, expect.any(String)]);
    return result.stdout.trim();
  };
  await command("desk", "create", "alpha");
  const invite = async (email: string): Promise<string> => {
    const link = ["member", "invite", "alpha", email, "--console-url", consoleUrl];
    return new URL(await command(...link)).pathname;
  };
  return { ...server, consoleUrl, invite, command };
}
