/** What `serve --quickstart` prints, pasted into a shell. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { startServe } from "../_cli.ts";
import { buildExecutable } from "../_executable.ts";
import { onCleanup, query } from "../_setup.ts";
import "./_faults.ts";

setDefaultTimeout(120_000);

async function run(shellCommand: string): Promise<string> {
  const child = Bun.spawn(["sh", "-c", shellCommand], { stdout: "pipe", stderr: "pipe" });
  onCleanup(() => child.kill());
  const stdout = await new Response(child.stdout).text();
  expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ""]);
  return stdout;
}

test("--quickstart prints a command that stores a signal when it is pasted", async () => {
  const server = await startServe(["--quickstart"], { program: [await buildExecutable()] });
  const command = server.output.stdout.slice(server.output.stdout.indexOf("curl "));
  const stored = JSON.parse(await run(command)) as { id: string };
  expect(stored).toEqual({
    id: expect.any(String),
    received_at: expect.any(Number),
    deduped: false,
  } as unknown as { id: string });
  expect(JSON.parse(await run(command))).toEqual({ id: stored.id, deduped: true });
  expect(query(server.dataDir, "SELECT id FROM signals")).toEqual([{ id: stored.id }]);
  // The same command for another signal, printing the status.
  const another = command.replace("my-first-signal", "my-second-signal");
  const visible = another.replace("curl ", "curl -o /dev/null -w '%{http_code}' ");
  expect(await run(visible)).toBe("201");
});
