import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { freePort, mintKey, startServe } from "../_cli.ts";
import { startLoad } from "../_load.ts";
import { callUrl, query, signal, temporaryFolder } from "../_setup.ts";

setDefaultTimeout(120_000);

const ROUNDS = 20;

test("killed again and again under load, it keeps every signal that it acknowledged, exactly once", async () => {
  const dataDir = join(temporaryFolder(), "data");
  const { key } = await mintKey(dataDir);
  const listen = `127.0.0.1:${await freePort()}`;
  const url = `http://${listen}`;
  const load = startLoad({ url, key, connections: 32, reuse: "mixed", retry: true });
  for (let round = 0; round < ROUNDS; round++) {
    const server = await startServe([], { dataDir, listen });
    // Not always at the same distance from the start, nor from the last commit.
    await load.more(50 + 17 * (round % 7), 201);
    server.kill("SIGKILL");
    expect(await server.exited).toBe("SIGKILL");
    expect(query(dataDir, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  }
  const server = await startServe([], { dataDir, listen });
  await load.more(100, 201);
  const results = await load.end();

  const answered = results.filter(({ outcome }) => typeof outcome === "number");
  for (const { outcome, unanswered } of answered) {
    expect(unanswered === 0 ? [201] : [200, 201]).toContain(outcome as number);
  }
  const broken = results.filter(({ outcome }) => outcome === "broken");
  expect(broken.length).toBeGreaterThan(0);

  const rows = query<{ id: string; clientId: string }>(
    dataDir,
    "SELECT id, client_signal_id AS clientId FROM signals ORDER BY seq",
  );
  const stored = new Map(rows.map(({ id, clientId }) => [clientId, id]));
  expect(stored.size).toBe(rows.length);
  const lost = answered.filter(({ clientId, id }) => stored.get(clientId) !== id);
  expect(lost).toEqual([]);
  // Every signal was sent until it had its answer, so nothing else is there.
  const answeredIds = new Set(answered.map(({ clientId }) => clientId));
  const unknown = rows.filter(({ clientId }) => !answeredIds.has(clientId));
  expect(unknown).toEqual([]);
  expect(rows.map(({ id }) => id)).toEqual(rows.map(({ id }) => id).toSorted());

  const sample = answered.filter((_, index) => index % 50 === 0);
  for (const { clientId, id } of sample) {
    const { status, body } = await callUrl(url, "/v1/signals", {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ ...signal, client_signal_id: clientId }),
    });
    expect({ status, body }).toEqual({ status: 200, body: { id, deduped: true } });
  }
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(query(dataDir, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
});
