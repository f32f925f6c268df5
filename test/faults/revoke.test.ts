/** Keys revoked under load: from then on, no signal of the key is stored. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { openDatabase } from "../../src/store/sqlite/open.ts";
import { SqliteRegistry } from "../../src/store/sqlite/registry.ts";
import { cli, mintKey, startServe } from "../_cli.ts";
import { type Load, startLoad } from "../_load.ts";
import { onCleanup, query } from "../_setup.ts";
import { post, report, scale } from "./_faults.ts";

setDefaultTimeout(120_000);

interface Victim {
  readonly key: string;
  readonly load: Load;
  /** How many of its signals are committed now. */
  readonly rows: () => number;
}

/** The key to be revoked and another desk's key are both under load. */
async function underLoad(
  injected: string,
  rounds: number,
  mint: (dataDir: string) => Promise<{ key: string; id: string }>,
  revoke: (dataDir: string, id: string) => Promise<void>,
): Promise<void> {
  const { url, dataDir } = await startServe(["--rate-limit", "0"]);
  const other = await mintKey(dataDir, "beta");
  const background = startLoad({ url, key: other.key, connections: 16, prefix: "background" });
  let kept = 0;
  for (let round = 0; round < rounds; round++) {
    const { key, id } = await mint(dataDir);
    const load = startLoad({ url, key, connections: 32, reuse: "mixed", prefix: `round-${round}` });
    const db = openDatabase(dataDir, "reader");
    onCleanup(() => db.close());
    const count = db.query<{ n: number }, [string]>(
      "SELECT count(*) AS n FROM signals WHERE key_id = ?",
    );
    const rows = () => count.get(id)?.n ?? -1;
    await load.more(200, 201);
    await revoke(dataDir, id);
    kept += await expectSilence({ key, load, rows }, rows(), url);
  }
  const results = await background.end();
  expect(results.filter(({ outcome }) => outcome !== 201)).toEqual([]);
  expect(query(dataDir, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  report("revoke", {
    injected,
    times: rounds,
    checked: `${kept} signals of the revoked keys, as many as were acknowledged, and none later; ${results.length} of another desk's meanwhile, every one a 201`,
  });
}

async function expectSilence(
  { key, load, rows }: Victim,
  afterRevoke: number,
  url: string,
): Promise<number> {
  expect((await post(url, key)).status).toBe(401);
  await load.more(100, 401);
  const statuses = (await load.end()).map(({ outcome }) => outcome);
  expect(rows(), "signals of the key after its revoke").toBe(afterRevoke);
  expect(new Set(statuses)).toEqual(new Set([201, 401]));
  expect(statuses.filter((outcome) => outcome === 201)).toHaveLength(afterRevoke);
  return afterRevoke;
}

test("once `key revoke` has returned, no signal of that key commits", async () => {
  await underLoad(
    "`key revoke` under the key's own load of 32 connections, and another desk's",
    scale(5, 2),
    (dataDir) => mintKey(dataDir),
    async (dataDir, id) => {
      expect((await cli(["key", "revoke", id, "--data", dataDir])).code).toBe(0);
    },
  );
});

// A command ends some time after its commit, so the commit is made here.
test("once a revoke has committed, no signal of that key commits", async () => {
  let registry: SqliteRegistry | null = null;
  const open = (dataDir: string): SqliteRegistry => {
    if (registry !== null) return registry;
    const db = openDatabase(dataDir, "command");
    onCleanup(() => db.close());
    registry = new SqliteRegistry(db);
    registry.createDesk("alpha", { ifMissing: true });
    return registry;
  };
  await underLoad(
    "the commit of a revoke under the key's own load of 32 connections, and another desk's",
    scale(25, 6),
    async (dataDir) => {
      const { key, record } = open(dataDir).mintKey({
        desk: "alpha",
        label: null,
        expiresInMs: null,
      });
      return { key, id: record.id };
    },
    async (dataDir, id) => {
      expect(open(dataDir).revokeKey(id).changed).toBe(true);
    },
  );
});
