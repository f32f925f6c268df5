import { expect, setDefaultTimeout, test } from "bun:test";
import { mintKey, sendHalf, startServe } from "../_cli.ts";
import { makeCertificate, writeCertificate } from "../_certificates.ts";
import { startLoad } from "../_load.ts";
import { callUrl, query, signal, temporaryFolder } from "../_setup.ts";

setDefaultTimeout(120_000);

async function post(url: string, key: string): Promise<number> {
  const { status } = await callUrl(url, "/v1/signals", {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify(signal),
  });
  return status;
}

const byName = (a: { clientId: string }, b: { clientId: string }): number =>
  a.clientId < b.clientId ? -1 : 1;

async function stopUnderLoad(args: string[], stopSignal: "SIGTERM" | "SIGINT"): Promise<void> {
  const server = await startServe(args);
  const { dataDir, url } = server;
  const { key } = await mintKey(dataDir);
  const load = startLoad({ url, key, connections: 48, reuse: "mixed" });
  await load.more(300, 201);
  server.kill(stopSignal);
  expect(await server.exited).toBe(0);
  const results = await load.end();
  expect(server.output.stderr).toContain('"msg":"stopped"');
  expect(server.output.stderr).not.toMatch(/"level":"(warn|error|fatal)"/);

  // An answer, or no connection, or a connection that was closed before the request was taken.
  const statuses = new Set(results.map(({ outcome }) => outcome));
  for (const outcome of statuses) expect([201, 503, "refused", "broken"]).toContain(outcome);
  const rows = query<{ clientId: string; id: string }>(
    dataDir,
    "SELECT client_signal_id AS clientId, id FROM signals",
  );
  const acknowledged = results.filter(({ outcome }) => outcome === 201);
  expect(rows.toSorted(byName)).toEqual(
    acknowledged.map(({ clientId, id }) => ({ clientId, id: id ?? "" })).toSorted(byName),
  );
  expect(query(dataDir, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
}

test.each(["SIGTERM", "SIGINT", "SIGTERM", "SIGINT", "SIGTERM", "SIGTERM"] as const)(
  "%s under load: exit code 0, and what was stored is what was acknowledged",
  (stopSignal) => stopUnderLoad([], stopSignal),
);

test("the same with TLS", async () => {
  const { certFile, keyFile } = writeCertificate(temporaryFolder(), await makeCertificate("a"));
  await stopUnderLoad(["--tls-cert", certFile, "--tls-key", keyFile], "SIGTERM");
});

test("a request that is under way is finished and answered, and nothing new is taken", async () => {
  const server = await startServe(["--stop-timeout", "1m"]);
  const { key } = await mintKey(server.dataDir);
  const half = await sendHalf(server.url, key);
  expect(await post(server.url, key)).toBe(201);
  server.kill("SIGTERM");
  await server.logged("stopping");
  const { url } = server;
  let isOpen = true;
  while (isOpen)
    isOpen = await fetch(url)
      .then(() => true)
      .catch(() => false);
  await half.finish();
  expect(await half.closed).toContain("HTTP/1.1 201");
  expect(await server.exited).toBe(0);
  expect(query(server.dataDir, "SELECT id FROM signals WHERE symbol = 'HALF'")).toHaveLength(1);
});

test("idle connections do not hold it up", async () => {
  const server = await startServe(["--stop-timeout", "1m"]);
  const { key } = await mintKey(server.dataDir);
  for (let count = 0; count < 5; count++) expect(await post(server.url, key)).toBe(201);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
});

test("a second signal ends it at once, with a code that is not 0", async () => {
  const server = await startServe(["--stop-timeout", "1h"]);
  const { key } = await mintKey(server.dataDir);
  const half = await sendHalf(server.url, key);
  expect(await post(server.url, key)).toBe(201);
  server.kill("SIGTERM");
  await server.logged("stopping");
  server.kill("SIGTERM");
  expect(await server.exited).toBe(1);
  await half.closed;
  expect(query(server.dataDir, "SELECT id FROM signals")).toHaveLength(1);
});

test("a request that does not end is cut at the deadline, and the code is 0", async () => {
  const server = await startServe(["--stop-timeout", "100ms"]);
  const { key } = await mintKey(server.dataDir);
  const half = await sendHalf(server.url, key);
  expect(await post(server.url, key)).toBe(201);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(await half.closed).not.toContain("201");
  expect(server.output.stderr).toContain("cut the connections");
  expect(query(server.dataDir, "SELECT id FROM signals")).toHaveLength(1);
});
