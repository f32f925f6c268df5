/** Somebody deletes the write-ahead log, or its index, under a running server. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, renameSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { cli, type ServeProcess } from "../../kit/cli.ts";
import { post, query, temporaryFolder } from "../../kit/setup.ts";
import { fillDisk, mountMemory } from "../kit/disk.ts";
import { acknowledgedIn, expectKept, report, scale, stop } from "../kit/faults.ts";
import { expectKeptAfterRestart, underLoad } from "../kit/service.ts";

const ROUNDS = scale(4, 1);
const DATABASE = "signalbox.db";
const LOG = "signalbox.db-wal";
const INDEX = "signalbox.db-shm";
const REMOVED = /^the write-ahead log was removed or replaced while the server ran: /;

function startService(args: readonly string[] = [], dataDir = join(temporaryFolder(), "data")) {
  const load = { reuse: "mixed", metadataChars: 500, pauseMs: 1 } as const;
  return underLoad({ dataDir, args: ["--rate-limit", "0", ...args], load, signals: 200 });
}

type Service = Awaited<ReturnType<typeof startService>>;

const remove = (dataDir: string, ...names: string[]): void => {
  for (const name of names) rmSync(join(dataDir, name));
};

/** The server ends itself: returns its last line. One that does not notice is killed. */
async function lastWords(server: ServeProcess) {
  const patience = setTimeout(() => server.kill("SIGKILL"), 20_000);
  expect(await server.exited).toBe(1);
  clearTimeout(patience);
  const last = server.log().at(-1);
  expect(last?.level).toBe("fatal");
  return { reason: String(last?.["reason"]), msg: String(last?.msg) };
}

const expectNothingLost = async (service: Service) =>
  expectKeptAfterRestart(service, await service.load.end());

interface Removal {
  readonly name: string;
  readonly how: (dataDir: string) => void;
  readonly args?: readonly string[];
}

const removals: Removal[] = [
  { name: "the log removed", how: (dataDir) => remove(dataDir, LOG) },
  { name: "the log and its index removed", how: (dataDir) => remove(dataDir, LOG, INDEX) },
  { name: "the index removed", how: (dataDir) => remove(dataDir, INDEX) },
  {
    name: "the log replaced by a copy",
    how: (dataDir) => {
      const copy = join(temporaryFolder(), LOG);
      copyFileSync(join(dataDir, LOG), copy);
      renameSync(copy, join(dataDir, LOG));
    },
  },
  {
    name: "the log removed, with external checkpoints",
    how: (dataDir) => remove(dataDir, LOG),
    args: ["--external-checkpoints"],
  },
];

test.each(removals)("$name under load: the server ends, and nothing is lost", async (removal) => {
  let [kept, after] = [0, 0];
  // Until one was acknowledged after a removal: a busy machine may not be quick enough.
  for (let round = 0; round < ROUNDS || after === 0; round += 1) {
    const service = await startService(removal.args);
    const { server, load, dataDir } = service;
    const before = acknowledgedIn(load.results).length;
    removal.how(dataDir);
    const { reason, msg } = await lastWords(server);
    after += acknowledgedIn(load.results).length - before;
    kept += await expectNothingLost(service);
    expect(reason).toMatch(REMOVED);
    expect(reason).toContain("no acknowledged signal is lost");
    expect(msg).toEndWith("; restart signalbox, and find what removed the log");
  }
  const found = `${kept} answers kept, ${after} of them given after the removal`;
  report(removal.name, ROUNDS, found);
});

test.each([{ args: [] }, { args: ["--external-checkpoints"] }])(
  "the log emptied: the server ends, and says that signals may be lost ($args)",
  async ({ args }) => {
    const { server, load, dataDir, restart } = await startService(args);
    const ids = acknowledgedIn(await load.end()).map(({ id }) => id ?? "");
    truncateSync(join(dataDir, LOG));
    const { reason, msg } = await lastWords(server);
    expect(reason).toStartWith("the write-ahead log was emptied or cut off while the server ran: ");
    expect(msg).toContain("signals of the last minutes may be lost: ");
    expect(msg).toContain("ask the desks to send them again");
    const [, newest = "", at = ""] =
      /\(the newest acknowledged one: (\w+) of (\S+Z)\)/.exec(msg) ?? [];
    expect(newest).toBe(ids.toSorted().at(-1) ?? "none");
    expect(Date.now() - Date.parse(at)).toBeLessThan(300_000);
    await stop(await restart());
    expect(await cli(["verify", "--data", dataDir])).toMatchObject({ code: 0 });
  },
);

test("a checkpoint of another program that empties the log is no fault", async () => {
  const { server, load, dataDir } = await startService(["--external-checkpoints"]);
  const other = new Database(join(dataDir, DATABASE), { readwrite: true });
  for (let round = 0; round < 50; round += 1) {
    other.run("PRAGMA wal_checkpoint(TRUNCATE)");
    await load.more(1);
  }
  other.close();
  const results = await load.end();
  await stop(server);
  expectKept(dataDir, results);
});

test("a stop within the second after the removal loses nothing either", async () => {
  const service = await startService();
  const { server, dataDir, load } = service;
  remove(dataDir, LOG, INDEX);
  await load.more(20, 201);
  server.kill("SIGTERM");
  await lastWords(server);
  report("removed, then SIGTERM", 1, `${await expectNothingLost(service)} answers kept`);
});

test.each([{ names: [LOG] }, { names: [INDEX] }, { names: [LOG, INDEX] }])(
  "commands refuse to begin a second log while the server has not noticed ($names)",
  async ({ names }) => {
    const service = await startService();
    const { server, keyId, dataDir } = service;
    // It holds its files, and notices nothing.
    server.kill("SIGSTOP");
    remove(dataDir, ...names);
    const backup = join(temporaryFolder(), "backup.db");
    const refused = [["key", "revoke", keyId], ["verify"], ["backup", backup]].map(async (args) => {
      const { code, stderr } = await cli([...args, "--data", dataDir]);
      expect({ args, code, stderr }).toEqual({
        args,
        code: 1,
        stderr: expect.stringMatching(
          /^signalbox: .*signalbox\.db-wal.* was removed while another process has the database open\. Do not stop a signalbox server.*fuser -v/,
        ),
      });
    });
    await Promise.all(refused);
    expect(existsSync(backup)).toBe(false);
    for (const name of names) expect(existsSync(join(dataDir, name))).toBe(false);
    server.kill("SIGCONT");
    await lastWords(server);
    await expectNothingLost(service);
    expect(query(dataDir, "SELECT revoked_at FROM api_keys")).toEqual([{ revoked_at: null }]);
  },
);

test("a key that is revoked while the log is removed stores nothing after it, or is not revoked", async () => {
  for (let round = 0; round < scale(20, 3); round += 1) {
    const { server, keyId, load, dataDir } = await startService();
    const revoking = cli(["key", "revoke", keyId, "--data", dataDir]).then(({ code }) => ({
      code,
      from: load.results.length,
    }));
    await Bun.sleep(round * 20);
    remove(dataDir, LOG, INDEX);
    const { code, from } = await revoking;
    await lastWords(server);
    const results = await load.end();
    const [row] = query<{ revoked_at: number | null }>(dataDir, "SELECT revoked_at FROM api_keys");
    expect(row?.revoked_at === null).toBe(code !== 0);
    // Those of the eight connections may have been answered before.
    if (code === 0) expect(acknowledgedIn(results.slice(from + 8))).toEqual([]);
    expectKept(dataDir, results);
  }
});

test("what another program wrote to a second log is set aside, and named in the log", async () => {
  const service = await startService();
  const { server, dataDir } = service;
  server.kill("SIGSTOP");
  remove(dataDir, LOG, INDEX);
  const other = new Database(join(dataDir, DATABASE), { readwrite: true });
  other.run("PRAGMA wal_autocheckpoint = 0");
  other.run("UPDATE desks SET name = 'other'");
  other.close();
  server.kill("SIGCONT");
  const { reason } = await lastWords(server);
  const [aside = ""] = readdirSync(dataDir).filter((name) => name.startsWith(`${LOG}.`));
  expect(aside).toMatch(/^signalbox\.db-wal\.second-\d+$/);
  expect(reason).toContain(join(dataDir, aside));
  await expectNothingLost(service);
});

/** A server whose load has filled the disk, and whose log was removed then. */
async function startOnFullDisk() {
  const root = mountMemory(64);
  const service = await startService([], join(root, "data"));
  const makeRoom = fillDisk(root, 2);
  await service.load.more(100, 503);
  remove(service.dataDir, LOG);
  await service.server.logged("the removed log is not copied into the database yet");
  return { ...service, makeRoom };
}

test("on a full disk the server answers 503 until the removed log fits into the database", async () => {
  const service = await startOnFullDisk();
  const { server, url, key, dataDir, load, makeRoom } = service;
  await server.logged("do not stop the server: it has the only copy");
  expect((await post(url, key)).status).toBe(503);
  const health = await cli(["healthcheck", "--data", dataDir]);
  expect(health.code).toBe(1);
  expect(health.stdout).toMatch(/^writer: failing \(.*the write-ahead log was removed/m);
  makeRoom();
  await lastWords(server);
  expect(load.results.some(({ outcome }) => outcome === 503)).toBe(true);
  report("removed on a full disk", 1, `${await expectNothingLost(service)} answers kept`);
});

test("a server that is stopped before the removed log fits says what is lost, and what to do", async () => {
  const { server, dataDir } = await startOnFullDisk();
  const status = await cli(["status", "--data", dataDir]);
  expect(status.stderr).toContain("Do not stop a signalbox server: it has the only copy");
  server.kill("SIGTERM");
  const { reason, msg } = await lastWords(server);
  expect(reason).toMatch(/could not be copied.*are lost, and the database may be damaged$/);
  expect(msg).toMatch(/free some space, then verify .* restore a backup .*send them again/);
});

test("a server whose database was deleted with its log does not say that nothing is lost", async () => {
  const { server, dataDir } = await startService();
  remove(dataDir, DATABASE, LOG, INDEX);
  const { reason, msg } = await lastWords(server);
  expect(reason).toEndWith("and everything if it was deleted");
  expect(msg).toContain("restore a backup if it was deleted");
});
