/** Somebody deletes the write-ahead log, or its index, under a running server. */
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  truncateSync,
} from "node:fs";
import { join } from "node:path";
import { cli, mintKey, type ServeProcess, startServe } from "../../kit/cli.ts";
import { type Load, startLoad } from "../../kit/load.ts";
import { post, query, temporaryFolder } from "../../kit/setup.ts";
import { mountMemory } from "../kit/disk.ts";
import { acknowledgedIn, expectKept, expectSameIds, report, scale, stop } from "../kit/faults.ts";

setDefaultTimeout(300_000);

const ROUNDS = scale(4, 1);
const DATABASE = "signalbox.db";
const LOG = "signalbox.db-wal";
const INDEX = "signalbox.db-shm";
const REMOVED = /^the write-ahead log was removed or replaced while the server ran: /;

interface Service {
  readonly server: ServeProcess;
  readonly key: string;
  readonly keyId: string;
  readonly load: Load;
}

async function startService(
  args: readonly string[] = [],
  dataDir = join(temporaryFolder(), "data"),
): Promise<Service> {
  // Before the start, so that desk and key are in the database itself.
  const { key, id: keyId } = await mintKey(dataDir);
  const server = await startServe(["--rate-limit", "0", ...args], { dataDir });
  const load = startLoad({ url: server.url, key, reuse: "mixed", metadataChars: 500, pauseMs: 1 });
  await load.more(500, 201);
  return { server, key, keyId, load };
}

const remove = (dataDir: string, ...names: string[]): void => {
  for (const name of names) rmSync(join(dataDir, name));
};

/** A server that does not notice is killed. */
async function endOf(server: ServeProcess): Promise<{ code: number | string; tookMs: number }> {
  const from = performance.now();
  const kill = setTimeout(() => server.kill("SIGKILL"), 20_000);
  const code = await server.exited;
  clearTimeout(kill);
  return { code, tookMs: Math.round(performance.now() - from) };
}

/** Everything that was acknowledged is there after a restart, which takes signals again. */
async function expectKeptAfterRestart({ server: { dataDir }, key, load }: Service) {
  const results = await load.end();
  const restarted = await startServe([], { dataDir });
  const acknowledged = acknowledgedIn(results);
  await expectSameIds(restarted.url, key, acknowledged.slice(-50));
  expect((await post(restarted.url, key)).status).toBe(201);
  await stop(restarted);
  expect(await cli(["verify", join(dataDir, DATABASE)])).toMatchObject({ code: 0 });
  return expectKept(dataDir, results);
}

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
  let [kept, after, slowest] = [0, 0, 0];
  // Until one was acknowledged after a removal: a busy machine may not be quick enough.
  for (let round = 0; round < ROUNDS || after === 0; round += 1) {
    const service = await startService(removal.args);
    const { server, load } = service;
    const before = acknowledgedIn(load.results).length;
    removal.how(server.dataDir);
    const { code, tookMs } = await endOf(server);
    after += acknowledgedIn(load.results).length - before;
    slowest = Math.max(slowest, tookMs);
    kept += await expectKeptAfterRestart(service);
    expect(code).toBe(1);
    expect(server.log().at(-1)).toMatchObject({
      level: "fatal",
      reason: expect.stringMatching(REMOVED),
    });
    expect(server.log().at(-1)?.["reason"]).toContain("no acknowledged signal is lost");
    expect(server.log().at(-1)?.msg).toEndWith(
      "; restart signalbox, and find what removed the log",
    );
  }
  report(
    removal.name,
    ROUNDS,
    `${kept} answers kept, ${after} of them given after the removal; ended within ${slowest} ms`,
  );
});

test.each([{ args: [] }, { args: ["--external-checkpoints"] }])(
  "the log emptied: the server ends, and says that signals may be lost ($args)",
  async ({ args }) => {
    const service = await startService(args);
    const { server, load } = service;
    const ids = acknowledgedIn(await load.end()).map(({ id }) => id ?? "");
    truncateSync(join(server.dataDir, LOG));
    expect((await endOf(server)).code).toBe(1);
    const last = server.log().at(-1);
    const msg = last?.msg ?? "";
    expect(last?.["reason"]).toStartWith(
      "the write-ahead log was emptied or cut off while the server ran: ",
    );
    expect(msg).toContain("signals of the last minutes may be lost: ");
    expect(msg).toContain("ask the desks to send them again");
    const [, newest = "", at = ""] =
      /\(the newest acknowledged one: (\w+) of (\S+Z)\)/.exec(msg) ?? [];
    expect(newest).toBe(ids.toSorted().at(-1) ?? "none");
    expect(Date.now() - Date.parse(at)).toBeLessThan(300_000);
    const restarted = await startServe([], { dataDir: server.dataDir });
    expect((await post(restarted.url, service.key)).status).toBe(201);
    await stop(restarted);
    expect(await cli(["verify", join(server.dataDir, DATABASE)])).toMatchObject({ code: 0 });
  },
);

test("a checkpoint of another program that empties the log is no fault", async () => {
  const service = await startService(["--external-checkpoints"]);
  const { server, load } = service;
  const other = new Database(join(server.dataDir, DATABASE), { readwrite: true });
  for (let round = 0; round < 100; round += 1) {
    other.run("PRAGMA wal_checkpoint(TRUNCATE)");
    await Bun.sleep(20);
  }
  other.close();
  const results = await load.end();
  await stop(server);
  expectKept(server.dataDir, results);
});

test("a stop within the second after the removal loses nothing either", async () => {
  const service = await startService();
  remove(service.server.dataDir, LOG, INDEX);
  await service.load.more(20, 201);
  service.server.kill("SIGTERM");
  expect((await endOf(service.server)).code).toBe(1);
  const kept = await expectKeptAfterRestart(service);
  report("removed, then SIGTERM", 1, `${kept} answers kept`);
});

test.each([{ names: [LOG] }, { names: [INDEX] }, { names: [LOG, INDEX] }])(
  "commands refuse to begin a second log while the server has not noticed ($names)",
  async ({ names }) => {
    const service = await startService();
    const { server, keyId } = service;
    const { dataDir } = server;
    // It holds its files, and notices nothing.
    server.kill("SIGSTOP");
    remove(dataDir, ...names);
    const backup = join(temporaryFolder(), "backup.db");
    const data = ["--data", dataDir];
    const refused = [
      ["key", "revoke", keyId, ...data],
      ["verify", join(dataDir, DATABASE)],
      ["backup", backup, ...data],
    ].map(async (args) => {
      const { code, stderr } = await cli(args);
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
    expect((await endOf(server)).code).toBe(1);
    await expectKeptAfterRestart(service);
    expect(query(dataDir, "SELECT revoked_at FROM api_keys")).toEqual([{ revoked_at: null }]);
  },
);

test("a key that is revoked while the log is removed stores nothing after it, or is not revoked", async () => {
  for (let round = 0; round < scale(20, 3); round += 1) {
    const service = await startService();
    const { server, keyId, load } = service;
    const { dataDir } = server;
    const revoking = cli(["key", "revoke", keyId, "--data", dataDir]).then((result) => ({
      ...result,
      from: load.results.length,
    }));
    await Bun.sleep(round * 20);
    remove(dataDir, LOG, INDEX);
    const { code, from } = await revoking;
    await endOf(server);
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
  const { server } = service;
  const path = join(server.dataDir, DATABASE);
  server.kill("SIGSTOP");
  remove(server.dataDir, LOG, INDEX);
  const other = new Database(path, { readwrite: true });
  other.run("PRAGMA wal_autocheckpoint = 0");
  other.run("UPDATE desks SET name = 'other'");
  other.close();
  server.kill("SIGCONT");
  expect((await endOf(server)).code).toBe(1);
  const [aside = ""] = readdirSync(server.dataDir).filter((name) => name.startsWith(`${LOG}.`));
  expect(aside).toMatch(/^signalbox\.db-wal\.second-\d+$/);
  expect(server.log().at(-1)?.["reason"]).toContain(join(server.dataDir, aside));
  await expectKeptAfterRestart(service);
});

/** A server whose load has filled the disk, and whose log was removed then. */
async function startOnFullDisk(): Promise<Service & { filler: string }> {
  const root = mountMemory(64);
  const service = await startService([], join(root, "data"));
  const filler = join(root, "filler");
  const { bavail, bsize } = statfsSync(root);
  const size = bavail * bsize - 2 * 1024 * 1024;
  expect(Bun.spawnSync(["fallocate", "-l", `${size}`, filler]).exitCode).toBe(0);
  await service.load.more(100, 503);
  remove(service.server.dataDir, LOG);
  return { ...service, filler };
}

test("on a full disk the server answers 503 until the removed log fits into the database", async () => {
  const service = await startOnFullDisk();
  const { server, key, filler, load } = service;
  await server.logged("the removed log is not copied into the database yet");
  await server.logged("do not stop the server: it has the only copy");
  expect((await post(server.url, key)).status).toBe(503);
  const health = await cli(["healthcheck", "--data", server.dataDir]);
  expect(health.code).toBe(1);
  expect(health.stdout).toMatch(/^writer: failing \(.*the write-ahead log was removed/m);
  rmSync(filler);
  expect((await endOf(server)).code).toBe(1);
  expect(load.results.some(({ outcome }) => outcome === 503)).toBe(true);
  const kept = await expectKeptAfterRestart(service);
  report("removed on a full disk", 1, `${kept} answers kept`);
});

test("a server that is stopped before the removed log fits says what is lost, and what to do", async () => {
  const { server, load } = await startOnFullDisk();
  await server.logged("the removed log is not copied into the database yet");
  const status = await cli(["status", "--data", server.dataDir]);
  expect(status.stderr).toContain("Do not stop a signalbox server: it has the only copy");
  server.kill("SIGTERM");
  expect((await endOf(server)).code).toBe(1);
  await load.end();
  const last = server.log().at(-1);
  expect(last?.["reason"]).toMatch(
    /could not be copied.*are lost, and the database may be damaged$/,
  );
  expect(last?.msg).toMatch(/free some space, then verify .* restore a backup .*send them again/);
});

test("a server whose database was deleted with its log does not say that nothing is lost", async () => {
  const { server, load } = await startService();
  remove(server.dataDir, DATABASE, LOG, INDEX);
  expect((await endOf(server)).code).toBe(1);
  await load.end();
  const last = server.log().at(-1);
  expect(last?.["reason"]).toEndWith("and everything if it was deleted");
  expect(last?.msg).toContain("restore a backup if it was deleted");
});
