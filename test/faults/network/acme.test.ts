/** Certificates from Pebble: issued, renewed, and kept when it fails. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { askStatus } from "../../../src/ops/client.ts";
import { mintKey, type ServeProcess, startServe } from "../../kit/cli.ts";
import { startLoad } from "../../kit/load.ts";
import { temporaryFolder } from "../../kit/setup.ts";
import { acmeFlags, certificateCheck } from "../kit/directory.ts";
import { expectKept, report, scale, stop } from "../kit/faults.ts";
import { type Pebble, startPebble } from "../kit/pebble.ts";

setDefaultTimeout(180_000);

const names = ["signals.example.com", "console.example.com"];

async function setUp(lifetimeS: number) {
  const pebble = await startPebble(lifetimeS);
  const dataDir = join(temporaryFolder(), "data");
  const args = [...acmeFlags(names, pebble), "--console-listen=127.0.0.1:0"];
  const start = (until?: string) =>
    startServe(args, { dataDir, ...(until === undefined ? {} : { until }) });
  return { pebble, dataDir, start };
}

/** Asks as a bot does, which knows the root and the name. */
async function reach(url: string, name: string, pebble: Pebble): Promise<number> {
  const { status } = await fetch(`${url}/openapi.yaml`, {
    headers: { Host: name },
    tls: { ca: await pebble.root(), serverName: name },
    keepalive: false,
  });
  return status;
}

async function logged(server: ServeProcess, text: string, times: number): Promise<void> {
  while (server.log().filter(({ msg }) => msg === text).length < times) await Bun.sleep(50);
}

test("a certificate for two names is issued, and a restart needs no directory", async () => {
  const { pebble, dataDir, start } = await setUp(3_600);
  const server = await start();
  for (const name of names) expect(await reach(server.url, name, pebble)).toBe(200);
  const expiresAt = (await askStatus(dataDir))?.certificate_expires_at;
  await stop(server);
  await pebble.stop();
  const again = await start();
  expect((await askStatus(dataDir))?.certificate_expires_at).toBe(expiresAt as number);
  await stop(again);
});

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

test("while the directory is down, the old certificate stays in use", async () => {
  const { pebble, dataDir, start } = await setUp(30);
  const server = await start();
  const before = (await askStatus(dataDir))?.certificate_expires_at as number;
  await pebble.stop();
  await server.logged("the certificate could not be renewed; the current one stays in use");
  expect(await certificateCheck(dataDir)).toEqual({
    ok: true,
    detail: expect.stringMatching(/: the order of .+ failed: .+/),
  });
  expect((await askStatus(dataDir))?.certificate_expires_at).toBe(before);
  await pebble.start();
  await server.logged("new certificate in use");
  const status = await askStatus(dataDir);
  expect(status?.certificate_expires_at).toBeGreaterThan(before);
  expect(status?.acme?.failure).toBeNull();
  expect(await reach(server.url, "signals.example.com", pebble)).toBe(200);
  await stop(server);
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
