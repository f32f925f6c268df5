/** SIGTERM and SIGINT to the executable, while the reader of its log is gone or stuck. */
import { beforeAll, expect, test } from "bun:test";
import { closeSync, constants, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { environment, freePort, mintKey, sendHalf } from "../kit/cli.ts";
import { buildExecutable } from "../kit/executable.ts";
import { onCleanup, temporaryFolder } from "../kit/setup.ts";
import { CTRL_C, startOnTerminal } from "../kit/terminal.ts";

let executable = "";

beforeAll(async () => {
  executable = await buildExecutable();
});

interface Started {
  readonly url: string;
  readonly dataDir: string;
  readonly kill: (signal: NodeJS.Signals) => void;
  /** The exit code, or the name of the signal that ended it. */
  readonly exited: Promise<number | string>;
  /** Closes the reading end of its stderr. */
  readonly endReader: () => void;
}

/** Starts a server whose stderr is a pipe that nobody reads. */
async function startUnread(args: readonly string[]): Promise<Started> {
  const folder = temporaryFolder();
  const dataDir = join(folder, "data");
  const fifo = join(folder, "log");
  if (Bun.spawnSync(["mkfifo", fifo]).exitCode !== 0) throw new Error("no pipe");
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(fifo, constants.O_WRONLY);
  const url = `http://127.0.0.1:${await freePort()}`;
  const where = ["--data", dataDir, "--listen", new URL(url).host, "--console-listen", "off"];
  const child = Bun.spawn([executable, "serve", ...where, "--stop-timeout", "1s", ...args], {
    env: environment({}),
    stdio: ["ignore", "ignore", writer],
  });
  closeSync(writer);
  let isOpen = true;
  const endReader = (): void => {
    if (isOpen) closeSync(reader);
    isOpen = false;
  };
  onCleanup(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await child.exited;
    endReader();
  });
  while (!(await get(url))) {
    if (child.exitCode !== null) throw new Error(`serve ended with code ${child.exitCode}`);
    await Bun.sleep(10);
  }
  const exited = child.exited.then(() => child.signalCode ?? child.exitCode ?? -1);
  return { url, dataDir, kill: (signal) => child.kill(signal), exited, endReader };
}

/** Whether there was an answer. */
function get(url: string): Promise<boolean> {
  return fetch(`${url}/openapi.yaml`, { headers: { Connection: "close" } }).then(
    async (answer) => (await answer.text()) !== "",
    () => false,
  );
}

/** Logs more lines than fit into a pipe (64 KiB). */
async function fillLog({ url }: Started): Promise<void> {
  for (let count = 0; count < 600; count += 1) expect(await get(url)).toBe(true);
}

const readers = [
  ["gone", async (server: Started) => server.endReader()],
  ["stuck", fillLog],
] as const;

test.each(
  readers.flatMap(([reader, breakLog]) => [
    [reader, "SIGTERM", 5, breakLog] as const,
    [reader, "SIGINT", 50, breakLog] as const,
  ]),
)(
  "with the log's reader %s, %s twice, %d ms apart, counts once: exit code 0",
  async (_, signal, ms, breakLog) => {
    const server = await startUnread(["--log-level", "debug"]);
    await breakLog(server);
    server.kill(signal);
    await Bun.sleep(ms);
    server.kill(signal);
    expect(await server.exited).toBe(0);
  },
);

test.each(readers)(
  "with the log's reader %s, a signal a second after the first ends the server at once: exit code 1",
  async (_, breakLog) => {
    const server = await startUnread(["--log-level", "debug", "--stop-timeout", "1h"]);
    const { key } = await mintKey(server.dataDir, "alpha", { program: [executable] });
    const half = await sendHalf(server.url, key);
    await breakLog(server);
    for (const waitMs of [20, 1_000, 0]) {
      server.kill("SIGTERM");
      await Bun.sleep(waitMs);
    }
    expect(await server.exited).toBe(1);
    await half.closed;
  },
);

test("Ctrl-C in a terminal ends `bun run start` with code 0 and no error message", async () => {
  const folder = temporaryFolder();
  const serve = `${executable} serve --data ${folder}/data --listen 127.0.0.1:0 --console-listen off`;
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ scripts: { start: `true && ${serve}` } }),
  );
  const child = startOnTerminal(["run", "start"], { cwd: folder, program: [process.execPath] });
  await child.showed(/takes signals at/);
  child.press(CTRL_C);
  const { code, shown } = await child.ended();
  expect({ code, shown }).toEqual({ code: 0, shown: expect.stringMatching(/stopped\S*\s*$/) });
  // On a terminal, the log is for people.
  expect(shown).toContain("INFO");
  expect(shown).not.toContain('"level"');
});
