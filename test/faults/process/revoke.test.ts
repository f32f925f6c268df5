/** Keys revoked under load: from then on, no signal of the key is stored. */
import { expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { cli, mintKey } from "../../kit/cli.ts";
import { startLoad } from "../../kit/load.ts";
import { post, query } from "../../kit/setup.ts";
import { report, scale } from "../kit/faults.ts";
import { underLoad } from "../kit/service.ts";

/** Revokes keys that are under load, beside the load of another desk. */
async function revokeUnderLoad(
  name: string,
  rounds: number,
  revoke: (dataDir: string, id: string) => Promise<void> | void,
): Promise<void> {
  const crowd = { connections: 16, prefix: "background" };
  const { url, dataDir, load: background } = await underLoad({ load: crowd });
  let kept = 0;
  for (let round = 0; round < rounds; round += 1) {
    const { key, id } = await mintKey(dataDir, "beta");
    const load = startLoad({ url, key, connections: 32, reuse: "mixed", prefix: `round-${round}` });
    const count = (): number =>
      query<{ n: number }>(dataDir, "SELECT count(*) AS n FROM signals WHERE key_id = ?", id)[0]
        ?.n ?? -1;
    await load.more(200, 201);
    await revoke(dataDir, id);
    const afterRevoke = count();
    expect((await post(url, key)).status).toBe(401);
    await load.more(100, 401);
    const statuses = (await load.end()).map(({ outcome }) => outcome);
    expect(count(), "signals of the key after its revoke").toBe(afterRevoke);
    expect(new Set(statuses)).toEqual(new Set([201, 401]));
    expect(statuses.filter((outcome) => outcome === 201)).toHaveLength(afterRevoke);
    kept += afterRevoke;
  }
  const results = await background.end();
  expect(results.filter(({ outcome }) => outcome !== 201)).toEqual([]);
  expect(query(dataDir, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  const found = `${kept} signals of revoked keys; ${results.length} of another desk, all 201`;
  report(name, rounds, found);
}

test("once `key revoke` has returned, no signal of that key commits", () =>
  revokeUnderLoad("key revoke", scale(5, 2), async (dataDir, id) => {
    expect((await cli(["key", "revoke", id, "--data", dataDir])).code).toBe(0);
  }));

// A command ends some time after its commit, so the commit is made here.
test("once a revoke has committed, no signal of that key commits", () =>
  revokeUnderLoad("the commit of a revoke", scale(25, 12), (dataDir, id) => {
    const db = new Database(join(dataDir, "signalbox.db"), { readwrite: true, create: false });
    db.run("PRAGMA busy_timeout = 10000");
    db.run("UPDATE api_keys SET revoked_at = ? WHERE id = ?", [Date.now(), id]);
    db.close();
  }));
