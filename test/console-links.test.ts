/** The addresses that the links of `desk invite` and `desk reset` begin with, as the executable prints them. */
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { cli, mintKey, startServe } from "./_cli.ts";
import { buildExecutable } from "./_executable.ts";
import { temporaryFolder } from "./_setup.ts";

setDefaultTimeout(60_000);

let program: readonly string[] = [];

beforeAll(async () => {
  program = [await buildExecutable()];
});

async function links(dataDir: string, args: readonly string[] = []) {
  const where = ["alpha", "--email", "ada@example.com", "--data", dataDir, ...args];
  const invited = await cli(["desk", "invite", ...where], { program });
  const again = ["alpha", "ada@example.com", "--data", dataDir, ...args];
  const reset = await cli(["desk", "reset", ...again], { program });
  expect([invited.code, reset.code]).toEqual([0, 0]);
  return [invited, reset].map(({ stdout, stderr }) => ({
    begin: stdout.replace(/\/join\/[\w-]{43}\n$/, ""),
    stderr,
  }));
}

test("they begin with what the running server was told of its console, unless the command is told otherwise", async () => {
  const url = "https://console.example.com";
  const args = ["--console-listen", "127.0.0.1:0", "--console-url", url];
  const { dataDir } = await startServe(args, { program });
  await mintKey(dataDir, "alpha", { program });
  for (const { begin, stderr } of await links(dataDir)) {
    expect(begin).toBe(url);
    expect(stderr).not.toContain("--console-url");
  }
  const other = "https://other.example.com";
  for (const { begin } of await links(dataDir, ["--console-url", other])) expect(begin).toBe(other);
});

test("without --console-url they begin with the address that the console has", async () => {
  const server = await startServe(["--console-listen", "127.0.0.1:0"], { program });
  await mintKey(server.dataDir, "alpha", { program });
  await server.logged("desks manage their keys at");
  const address = /manage their keys at ([^"\s]+)/.exec(server.output.stderr)?.[1];
  for (const { begin } of await links(server.dataDir)) expect(begin).toBe(String(address));
});

test("it is said if no server runs, or the one that runs has no console", async () => {
  const stopped = temporaryFolder();
  await mintKey(stopped, "alpha", { program });
  const { dataDir: off } = await startServe(["--console-listen", "off"], { program });
  await mintKey(off, "alpha", { program });
  const cases = [
    [stopped, `no server of ${stopped} answers`],
    [off, `The server of ${off} has no console (--console-listen off)`],
  ] as const;
  for (const [dataDir, why] of cases) {
    for (const { begin, stderr } of await links(dataDir)) {
      expect(begin).toBe("http://127.0.0.1:8081");
      expect(stderr).toContain(why);
      expect(stderr).toContain("give --console-url URL");
    }
  }
});
