/** The drill: a backup under load, the data destroyed, a restore, and bots that send again what they must. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DATABASE_NAME } from "../../../src/store/sqlite/files/folder.ts";
import { cli, type CliResult, mintKey, startServe } from "../../kit/cli.ts";
import type { LoadResult } from "../../kit/client.ts";
import { startLoad } from "../../kit/load.ts";
import { post, query, temporaryFolder } from "../../kit/setup.ts";
import { acknowledgedIn, expectKept, report, scale, stop } from "../kit/faults.ts";

setDefaultTimeout(300_000);

const ROUNDS = scale(5, 1);
/** Acknowledged before the backup, while it is made, and after it, at the least. */
const SIGNALS_BEFORE = scale(4_000, 1_000);
const SIGNALS_AFTER = scale(1_000, 200);
const RESENT_AT_ONCE = 32;

interface Disaster {
  readonly keys: { readonly used: string; readonly unused: string; readonly revoked: string };
  readonly dataDir: string;
  readonly backup: string;
  /** What clients had received when the backup began, and at the end. */
  readonly before: readonly LoadResult[];
  readonly all: readonly LoadResult[];
}

/** A server under full load is backed up, continues, and is killed. */
async function runToDisaster(): Promise<Disaster> {
  const server = await startServe(["--rate-limit", "0"]);
  const { dataDir, url } = server;
  const used = await mintKey(dataDir);
  const unused = await mintKey(dataDir);
  const revoked = await mintKey(dataDir);
  expect((await cli(["key", "revoke", revoked.id, "--data", dataDir])).code).toBe(0);
  const load = startLoad({
    url,
    key: used.key,
    connections: 32,
    reuse: "mixed",
    metadataChars: 200,
  });
  await load.more(SIGNALS_BEFORE, 201);
  const before = [...load.results];
  const backup = join(temporaryFolder(), "signalbox.db");
  expect((await cli(["backup", backup, "--data", dataDir])).code).toBe(0);
  expect(load.results.length, "signals meanwhile").toBeGreaterThan(before.length);
  await load.more(SIGNALS_AFTER, 201);
  server.kill("SIGKILL");
  expect(await server.exited).toBe("SIGKILL");
  const keys = { used: used.key, unused: unused.key, revoked: revoked.key };
  return { keys, dataDir, backup, before, all: await load.end() };
}

/** Ways to lose the data; each restores the backup. */
const losses: Record<string, (disaster: Disaster) => Promise<void>> = {
  "the data folder is removed": async ({ backup, dataDir }) => {
    rmSync(dataDir, { recursive: true });
    expectRestored(await cli(["restore", backup, "--data", dataDir]));
  },

  "the database and its log are overwritten with random bytes": async ({ backup, dataDir }) => {
    const files = [DATABASE_NAME, `${DATABASE_NAME}-wal`].map((name) => join(dataDir, name));
    const damaged = files.map((file) => randomBytes(statSync(file).size));
    for (const [index, file] of files.entries()) writeFileSync(file, damaged[index] ?? "");
    const restore = ["restore", backup, "--data", dataDir];
    const unforced = await cli(restore);
    expect(unforced.code).toBe(1);
    expect(unforced.stderr).toContain("add --force");
    const { stderr } = expectRestored(await cli([...restore, "--force"]));
    const kept = /^The previous database is kept as (.+)$/m.exec(stderr)?.[1] ?? "";
    for (const [index, suffix] of ["", "-wal"].entries()) {
      expect(readFileSync(kept + suffix).equals(damaged[index] ?? Buffer.alloc(0))).toBe(true);
    }
  },
};

function expectRestored(result: CliResult): CliResult {
  expect(result.code, result.stderr).toBe(0);
  expect(result.stderr).toContain("Desks, keys and members are as in the backup");
  return result;
}

async function send(url: string, key: string, clientId: string) {
  const { status, body } = await post(url, key, { client_signal_id: clientId });
  return { status, id: body["id"] };
}

/** Works on several items at a time, in their order. */
async function forAll<Item>(items: readonly Item[], work: (item: Item) => Promise<void>) {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: RESENT_AT_ONCE }, async () => {
      for (const item of rest) await work(item);
    }),
  );
}

function storedIn(dataDir: string): Map<string, string> {
  const sql = "SELECT client_signal_id AS clientId, id FROM signals";
  const rows = query<{ clientId: string; id: string }>(dataDir, sql);
  return new Map(rows.map(({ clientId, id }) => [clientId, id]));
}

/** Sends every acknowledged signal again: stored ones get their id, and lost ones are stored once. */
async function expectExactlyOnce(url: string, { all, dataDir, keys }: Disaster) {
  const stored = storedIn(dataDir);
  const newest = [...stored.values()].toSorted().at(-1) ?? "";
  const acknowledged = acknowledgedIn(all);
  const lost = acknowledged.filter(({ clientId }) => !stored.has(clientId));
  const known = acknowledged.filter(({ clientId }) => stored.has(clientId));
  await forAll(known, async ({ clientId, id }) => {
    expect(await send(url, keys.used, clientId)).toEqual({ status: 200, id });
  });
  await forAll(lost, async ({ clientId }) => {
    // Two at once, one of them with another key of the desk.
    const answers = await Promise.all(
      [keys.used, keys.unused].map((key) => send(url, key, clientId)),
    );
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 201]);
    const [one, other] = answers;
    expect(one?.id).toBe(other?.id);
    expect(String(one?.id) > newest).toBe(true);
  });
  expect(storedIn(dataDir).size).toBe(stored.size + lost.length);
  return { known: known.length, lost: lost.length };
}

async function expectSound(dataDir: string): Promise<void> {
  const { code, stdout } = await cli(["verify", "--json", "--data", dataDir]);
  expect({ code, ok: (JSON.parse(stdout) as { ok: boolean }).ok }).toEqual({ code: 0, ok: true });
}

test.each(Object.entries(losses))(
  "%s: a restore brings back every signal that was acknowledged before the backup began",
  async (name, loseAndRestore) => {
    const found = { before: 0, known: 0, lost: 0 };
    for (let round = 0; round < ROUNDS; round += 1) {
      const disaster = await runToDisaster();
      const { before, dataDir, keys } = disaster;
      await loseAndRestore(disaster);
      await expectSound(dataDir);
      const server = await startServe(["--rate-limit", "0"], { dataDir });
      found.before += expectKept(dataDir, before);
      const { known, lost } = await expectExactlyOnce(server.url, disaster);
      expect(lost).toBeGreaterThan(0);
      found.known += known;
      found.lost += lost;
      expect(await send(server.url, keys.unused, "new")).toMatchObject({ status: 201 });
      expect(await send(server.url, keys.revoked, "newer")).toMatchObject({ status: 401 });
      await expectSound(dataDir);
      await stop(server);
    }
    const { before, known, lost } = found;
    report(name, ROUNDS, `${before} of the backup kept; sent again: ${known} known, ${lost} new`);
  },
);
