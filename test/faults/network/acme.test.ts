/** Certificates from Pebble: renewals under load, and names that lead elsewhere. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { mintKey, type ServeProcess, startServe } from "../../kit/cli.ts";
import { startLoad } from "../../kit/load.ts";
import { temporaryFolder } from "../../kit/setup.ts";
import { acmeFlags, certificateCheck } from "../kit/directory.ts";
import { expectKept, report, scale, stop } from "../kit/faults.ts";
import { startPebble } from "../kit/pebble.ts";

const names = ["signals.example.com", "console.example.com"];

async function setUp(lifetimeS: number) {
  const pebble = await startPebble(lifetimeS);
  const dataDir = join(temporaryFolder(), "data");
  const args = [...acmeFlags(names, pebble), "--console-listen=127.0.0.1:0"];
  const start = (until?: string) =>
    startServe(args, { dataDir, ...(until === undefined ? {} : { until }) });
  return { pebble, dataDir, start };
}

async function logged(server: ServeProcess, text: string, times: number): Promise<void> {
  while (server.log().filter(({ msg }) => msg === text).length < times) await Bun.sleep(50);
}

test("renewals under load lose no request", async () => {
  const { dataDir, start } = await setUp(20);
  const server = await start();
  const { key } = await mintKey(dataDir);
  const load = startLoad({ url: server.url, key, connections: 8, reuse: "mixed" });
  const renewals = scale(4, 1);
  await logged(server, "new certificate in use", renewals);
  await load.more(200);
  const results = await load.end();
  expect(results.filter(({ outcome }) => outcome !== 201)).toEqual([]);
  await stop(server);
  expectKept(dataDir, results);
  report("renewed certificate", renewals, `${results.length} requests, none lost`);
});

test("a name that leads elsewhere is reported, and SIGHUP tries again once it is corrected", async () => {
  const { pebble, dataDir, start } = await setUp(3_600);
  await pebble.resolveTo("127.0.0.9");
  const server = await start("no certificate could be obtained");
  expect(String(server.log().at(-1)?.["reason"])).toMatch(
    /^(signals|console)\.example\.com: .*refused/,
  );
  expect((await certificateCheck(dataDir)).ok).toBe(false);
  await pebble.resolveTo("127.0.0.1");
  server.kill("SIGHUP");
  await server.logged("takes signals at");
  expect((await certificateCheck(dataDir)).ok).toBe(true);
  await stop(server);
});
