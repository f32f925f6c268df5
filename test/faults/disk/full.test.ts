/** Full disks: 503 while there is no room, and the service goes on by itself when there is. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import {
  cli,
  type CliResult,
  mintKey,
  type ServeProcess,
  signalbox,
  startServe,
} from "../../kit/cli.ts";
import { type Load, startLoad } from "../../kit/load.ts";
import { type Answer, post, temporaryFolder } from "../../kit/setup.ts";
import { mountDisk, mountMemory } from "../kit/disk.ts";
import { expectKept, isFull, report, scale, stop } from "../kit/faults.ts";
import { attachStrace } from "../kit/strace.ts";
import { checkpointingAfter, variantOf } from "../kit/variant.ts";

setDefaultTimeout(300_000);

const DATABASE = "signalbox.db";
const LOG = "signalbox.db-wal";
const INDEX = "signalbox.db-shm";

const DISK_MIB = 512;
/** A disk with so little left is full: some signals still fit, then none. */
const LEFT_BYTES = 1024 * 1024;
/** More than fit into what is left, and into the longest log. */
const SIGNALS_MAX = 20_000;

interface Service {
  readonly server: ServeProcess;
  readonly key: string;
  readonly load: Load;
}

/** A server under load; after a 503 its clients send the same signal again. */
async function startService(
  dataDir: string,
  { program = signalbox, metadataChars = 2_000 } = {},
): Promise<Service> {
  const server = await startServe([], { dataDir, program });
  const { key } = await mintKey(dataDir);
  // On a disk in memory, a faster load would reach the rate limit or outgrow the checkpoints.
  const pace = { pauseMs: 3, pauseAfter503Ms: 100 };
  const load = startLoad({ url: server.url, key, metadataChars, ...pace });
  await load.more(100, 201);
  return { server, key, load };
}

interface Outage {
  /** Returns how to end it. */
  readonly begin: () => Promise<() => Promise<void>>;
  /** The reason that health and log must give. */
  readonly cause: RegExp;
  readonly isDiskFull: boolean;
}

/** Waits until the last forty requests were refused: before that, some signals still fit. */
async function untilRefused({ results, more }: Load): Promise<void> {
  const from = results.length;
  do {
    expect(results.length - from, "signals without a refusal").toBeLessThan(SIGNALS_MAX);
    await more(1);
    for (const { outcome } of results.slice(-40)) {
      expect([201, 503], "answers on a full disk").toContain(outcome as number);
    }
  } while (results.slice(-40).some(({ outcome }) => outcome !== 503));
}

/** A single signal may still fit when those of the load do not. */
async function postUntilRefused(url: string, key: string): Promise<Answer> {
  for (;;) {
    const metadata = { note: "x".repeat(60_000) };
    const answer = await post(url, key, { client_signal_id: crypto.randomUUID(), metadata });
    if (answer.status !== 201) return answer;
  }
}

/** Asks again while a single signal that fits makes readiness green. */
async function failingHealth(dataDir: string): Promise<CliResult> {
  let health: CliResult;
  let tries = 0;
  do {
    health = await cli(["healthcheck", "--data", dataDir]);
    tries += 1;
  } while (!health.stdout.includes("writer: failing") && tries < 20);
  return health;
}

/** During the outage clients and operators are told; after it the service goes on without help. */
async function expectOutage({ server, key, load }: Service, outage: Outage): Promise<void> {
  const { dataDir, url } = server;
  expect(await cli(["healthcheck", "--data", dataDir])).toMatchObject({ code: 0 });
  const linesBefore = server.log().length;
  const end = await outage.begin();
  await untilRefused(load);

  const refusal = await postUntilRefused(url, key);
  expect(refusal.status).toBe(503);
  expect(refusal.headers.get("Retry-After")).toMatch(/^[1-9]\d*$/);

  const health = await failingHealth(dataDir);
  expect(health.code).toBe(1);
  expect(health.stdout).toMatch(/^writer: failing \(Signals are not being stored since /m);
  expect(health.stdout).toMatch(/: the disk (is full|refuses writes)/);
  expect(health.stdout).toContain(outage.isDiskFull ? "disk: failing (" : "disk: ok (");

  await end();
  await load.more(100, 201);
  expect(await cli(["healthcheck", "--data", dataDir])).toMatchObject({ code: 0 });
  await server.logged("signals are stored again");
  const news = server.log().slice(linesBefore);
  const told = news.find(({ msg }) => msg.startsWith("signals were not stored: "));
  expect(told?.level).toBe("error");
  expect(told?.["free_bytes"]).toBeNumber();
  expect(told?.["error"]).toMatch(outage.cause);
  expect(told?.msg).toContain("free some space");
  if (outage.isDiskFull) expect(told?.["free_bytes"]).toBeLessThanOrEqual(LEFT_BYTES);
  expect(news.filter(({ level }) => level === "fatal")).toEqual([]);
}

/** Every request has an answer, the server ends cleanly, and no acknowledged signal is lost. */
async function expectCleanEnd(name: string, times: number, { server, load }: Service) {
  const results = await load.end();
  const outcomes = new Set(results.map(({ outcome }) => outcome));
  for (const outcome of outcomes) expect([200, 201, 503]).toContain(outcome as number);
  await stop(server);
  expect(existsSync(join(server.dataDir, LOG)), "a log that is left").toBe(false);
  const refused = results.filter(({ outcome }) => outcome === 503).length;
  report(name, times, `${expectKept(server.dataDir, results)} signals kept, ${refused} times 503`);
  return refused;
}

/** Another user of the disk fills it, and later removes the file. */
function fill(root: string): Outage["begin"] {
  return async () => {
    const filler = join(root, "filler");
    const free = (): number => statfsSync(root).bavail * statfsSync(root).bsize;
    // Half of the rest each time, because the load writes meanwhile.
    for (let size = 0; free() > LEFT_BYTES;) {
      const more = Math.floor(free() / 2);
      const { exitCode } = Bun.spawnSync(["fallocate", "-o", `${size}`, "-l", `${more}`, filler]);
      if (exitCode === 0) size += more;
    }
    return async () => rmSync(filler);
  };
}

/** The kernel refuses to write to these files, or to make them longer. */
function refuseWrites(
  { pid, dataDir }: ServeProcess,
  files: readonly string[],
  error: string,
): Outage["begin"] {
  return async () => {
    const paths = files.flatMap((file) => ["-P", join(dataDir, file)]);
    const injected = `inject=pwrite64,ftruncate,fallocate:error=${error}`;
    const { detach } = await attachStrace(pid, ["-e", injected, ...paths]);
    return async () => expect(await detach()).toBeGreaterThan(0);
  };
}

/** All cases at full scale, otherwise the first. */
function some<Case>(...cases: [Case, ...Case[]]): Case[] {
  return isFull ? cases : cases.slice(0, 1);
}

const TIMES = scale(4, 1);

test.each(some("ext4", "tmpfs"))("a full %s: 503 until there is room again", async (kind) => {
  const root = kind === "ext4" ? mountDisk(DISK_MIB) : mountMemory(DISK_MIB);
  const service = await startService(join(root, "data"));
  const cause = /SQLITE_(FULL|IOERR_WRITE|IOERR_SHMSIZE)/;
  for (let time = 0; time < TIMES; time += 1) {
    await expectOutage(service, { begin: fill(root), cause, isDiskFull: true });
  }
  await expectCleanEnd(`a full ${kind}`, TIMES, service);
});

test.each(
  some({ error: "EDQUOT", cause: /SQLITE_IOERR_WRITE/ }, { error: "ENOSPC", cause: /SQLITE_FULL/ }),
)("$error at every write of the log: 503 until it is over", async ({ error, cause }) => {
  const service = await startService(join(temporaryFolder(), "data"));
  const begin = refuseWrites(service.server, [LOG], error);
  for (let time = 0; time < TIMES; time += 1) {
    await expectOutage(service, { begin, cause, isDiskFull: false });
  }
  await expectCleanEnd(`${error} at every write of the log`, TIMES, service);
});

// The index grows when the log first exceeds 4,062 pages: once per server.
test.each(some("ENOSPC", "EDQUOT", "ENOSPC", "EDQUOT"))(
  "%s when the log's index grows: 503 until it is over",
  async (error) => {
    const program = variantOf(checkpointingAfter(16_384));
    const dataDir = join(temporaryFolder(), "data");
    const service = await startService(dataDir, { metadataChars: 20_000, program });
    const begin = refuseWrites(service.server, [INDEX], error);
    await expectOutage(service, { begin, cause: /SQLITE_IOERR_SHMSIZE/, isDiskFull: false });
    await expectCleanEnd(`${error} when the log's index grows`, 1, service);
  },
);

test.each(some("EDQUOT", "ENOSPC"))(
  "%s at every write of the database's file: the log takes every signal meanwhile",
  async (error) => {
    const program = variantOf(checkpointingAfter(256));
    const service = await startService(join(temporaryFolder(), "data"), { program });
    const { dataDir } = service.server;
    const end = await refuseWrites(service.server, [DATABASE], error)();
    await service.load.more(300, 201);
    expect(await cli(["healthcheck", "--data", dataDir])).toMatchObject({ code: 0 });
    await end();
    await service.load.more(100, 201);
    expect(await expectCleanEnd(`${error} at every checkpoint`, 1, service)).toBe(0);
  },
);
