/** The drill: a backup under load, the data destroyed, a restore, and bots that send again what they must. */
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DATABASE_NAME } from "../../../src/store/sqlite/files/folder.ts";
import { cli, mintKey, startServe } from "../../kit/cli.ts";
import { post, query, temporaryFolder } from "../../kit/setup.ts";
import { acknowledgedIn, expectKept, kill, report, scale, stop } from "../kit/faults.ts";
import { underLoad } from "../kit/service.ts";

const ROUNDS = scale(5, 1);
/** Acknowledged before the backup, while it is made, and after it, at the least. */
const SIGNALS_BEFORE = scale(4_000, 1_000);
const SIGNALS_AFTER = scale(1_000, 200);
const RESENT_AT_ONCE = 32;

/** A server under full load is backed up, continues, and is killed. */
async function runToDisaster() {
  const { dataDir, key, load, server } = await underLoad({
    load: { connections: 32, reuse: "mixed", metadataChars: 200 },
    signals: SIGNALS_BEFORE,
  });
  const unused = await mintKey(dataDir);
  const revoked = await mintKey(dataDir);
  expect((await cli(["key", "revoke", revoked.id, "--data", dataDir])).code).toBe(0);
  // What clients had received when the backup began.
  const before = [...load.results];
  const backup = join(temporaryFolder(), "signalbox.db");
  expect((await cli(["backup", backup, "--data", dataDir])).code).toBe(0);
  expect(load.results.length, "signals meanwhile").toBeGreaterThan(before.length);
  await load.more(SIGNALS_AFTER, 201);
  await kill(server);
  const keys = { used: key, unused: unused.key, revoked: revoked.key };
  return { keys, dataDir, backup, before, all: await load.end() };
}

type Disaster = Awaited<ReturnType<typeof runToDisaster>>;

/** Ways to lose the data; each restores the backup. */
const losses: Record<string, (disaster: Disaster) => Promise<void>> = {
  "the data folder is removed": async ({ backup, dataDir }) => {
    rmSync(dataDir, { recursive: true });
    await restore(backup, dataDir);
  },

  "the database and its log are overwritten with random bytes": async ({ backup, dataDir }) => {
    const files = [DATABASE_NAME, `${DATABASE_NAME}-wal`].map((name) => join(dataDir, name));
    const damaged = files.map((file) => randomBytes(statSync(file).size));
    for (const [index, file] of files.entries()) writeFileSync(file, damaged[index] ?? "");
    const unforced = await cli(["restore", backup, "--data", dataDir]);
    expect(unforced.code).toBe(1);
    expect(unforced.stderr).toContain("add --force");
    const stderr = await restore(backup, dataDir, "--force");
    const kept = /^The previous database is kept as (.+)$/m.exec(stderr)?.[1] ?? "";
    for (const [index, suffix] of ["", "-wal"].entries()) {
      expect(readFileSync(kept + suffix).equals(damaged[index] ?? Buffer.alloc(0))).toBe(true);
    }
  },
};

async function restore(backup: string, dataDir: string, ...flags: string[]): Promise<string> {
  const { code, stderr } = await cli(["restore", backup, "--data", dataDir, ...flags]);
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("Desks, keys and members are as in the backup");
  return stderr;
}

async function send(url: string, key: string, clientId: string) {
  const { status, body } = await post(url, key, { client_signal_id: clientId });
  return { status, id: body["id"] };
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
  const rest = acknowledged.values();
  const sendRest = async (): Promise<void> => {
    for (const { clientId, id } of rest) {
      if (stored.has(clientId)) {
        expect(await send(url, keys.used, clientId)).toEqual({ status: 200, id });
        continue;
      }
      // Two at once, one of them with another key of the desk.
      const both = [keys.used, keys.unused].map((key) => send(url, key, clientId));
      const answers = await Promise.all(both);
      expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 201]);
      expect(answers[0]?.id).toBe(answers[1]?.id);
      expect(String(answers[0]?.id) > newest).toBe(true);
    }
  };
  await Promise.all(Array.from({ length: RESENT_AT_ONCE }, sendRest));
  expect(storedIn(dataDir).size).toBe(stored.size + lost.length);
  return { known: acknowledged.length - lost.length, lost: lost.length };
}

async function expectSound(dataDir: string): Promise<void> {
  expect(await cli(["verify", "--data", dataDir])).toMatchObject({ code: 0 });
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
      await stop(server);
      await expectSound(dataDir);
    }
    const { before, known, lost } = found;
    report(name, ROUNDS, `${before} of the backup kept; sent again: ${known} known, ${lost} new`);
  },
);
