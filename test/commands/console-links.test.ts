/** The console's URL in the links of `member invite` and `member reset`. */
import { expect, test } from "bun:test";
import { cliHere, mintKey, startServe } from "../kit/cli.ts";
import { temporaryFolder } from "../kit/setup.ts";

/** The URL and the notes of an invitation and of a reset. */
async function links(dataDir: string, ...args: string[]) {
  const where = ["--data", dataDir, ...args];
  const invited = await cliHere(["member", "invite", "alpha", "ada@example.com", ...where]);
  const reset = await cliHere(["member", "reset", "alpha", "ada@example.com", ...where]);
  return [invited, reset].map(({ code, stdout, stderr }) => ({
    code,
    url: stdout.replace(/\/join\/[\w-]{43}\n$/, ""),
    isDoubted: stderr.includes("--console-url"),
    stderr,
  }));
}

async function startWithDesk(...args: string[]) {
  const server = await startServe(args);
  await mintKey(server.dataDir);
  return server;
}

const sure = { code: 0, isDoubted: false };

test("is that of the running server, unless the command has another one", async () => {
  const url = "https://console.example.com";
  const server = await startWithDesk("--console-listen", "127.0.0.1:0", "--console-url", url);
  for (const link of await links(server.dataDir)) expect(link).toMatchObject({ ...sure, url });
  const other = "https://other.example.com";
  for (const link of await links(server.dataDir, "--console-url", other)) {
    expect(link).toMatchObject({ ...sure, url: other });
  }
});

test("is the console's address if the server has no --console-url", async () => {
  const server = await startWithDesk("--console-listen", "127.0.0.1:0");
  await server.logged("desks manage their keys at");
  const [, url = ""] = /manage their keys at ([^"\s]+)/.exec(server.output.stderr) ?? [];
  for (const link of await links(server.dataDir)) expect(link).toMatchObject({ ...sure, url });
});

test("is a guess, with a note, if no server runs or it has no console", async () => {
  const stopped = temporaryFolder();
  await mintKey(stopped);
  const { dataDir: off } = await startWithDesk("--console-listen", "off");
  for (const [dataDir, why] of [
    [stopped, `no server of ${stopped} answers`],
    [off, `The server of ${off} has no console (--console-listen off)`],
  ] as const) {
    for (const { url, stderr } of await links(dataDir)) {
      expect(url).toBe("http://127.0.0.1:8081");
      expect(stderr).toContain(why);
      expect(stderr).toContain("give --console-url URL");
    }
  }
});
