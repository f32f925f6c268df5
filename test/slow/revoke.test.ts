import { expect, setDefaultTimeout, test } from "bun:test";
import { cli, mintKey, startServe } from "../_cli.ts";
import { startLoad } from "../_load.ts";
import { callUrl, query, signal } from "../_setup.ts";

setDefaultTimeout(120_000);

test("once `key revoke` has returned, nothing of that key commits any more, under load", async () => {
  const { url, dataDir } = await startServe(["--rate-limit", "0"]);
  const other = await mintKey(dataDir, "beta");
  const background = startLoad({ url, key: other.key, connections: 16, prefix: "background" });
  for (let round = 0; round < 10; round++) {
    const { key, id } = await mintKey(dataDir);
    const rows = () =>
      query<{ seq: number }>(dataDir, "SELECT seq FROM signals WHERE key_id = ?", id).length;
    const load = startLoad({ url, key, connections: 32, reuse: "mixed", prefix: `round-${round}` });
    await load.more(200, 201);
    const revoked = await cli(["key", "revoke", id, "--data", dataDir]);
    const afterRevoke = rows();
    expect(revoked.code).toBe(0);
    const { status } = await callUrl(url, "/v1/signals", {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify(signal),
    });
    expect(status).toBe(401);
    await load.more(200, 401);
    const results = await load.end();
    expect(rows()).toBe(afterRevoke);
    const statuses = results.map(({ outcome }) => outcome);
    expect(new Set(statuses)).toEqual(new Set([201, 401]));
    expect(statuses.filter((outcome) => outcome === 201)).toHaveLength(afterRevoke);
  }
  const results = await background.end();
  expect(results.filter(({ outcome }) => outcome !== 201)).toEqual([]);
});
