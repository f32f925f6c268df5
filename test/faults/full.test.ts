import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { cli, type CliResult, signalbox, mintKey, type ServeProcess, startServe } from "../_cli.ts";
import { type Load, startLoad } from "../_load.ts";
import { type Answer, callUrl, signal, temporaryFolder } from "../_setup.ts";
import { canMount, mountDisk, mountMemory } from "./_disk.ts";
import { expectKept, isFull, report, scale } from "./_faults.ts";
import { attachStrace } from "./_strace.ts";
import { checkpointingAfter, variantOf } from "./_variant.ts";

setDefaultTimeout(300_000);

const DATABASE = "signalbox.db";
const LOG = "signalbox.db-wal";
const INDEX = "signalbox.db-shm";

const DISK_MIB = 512;
/** What is left of a disk that is called full: room for some more signals, and then for none. */
const LEFT_BYTES = 1024 * 1024;

interface Service {
  readonly server: ServeProcess;
  readonly key: string;
  readonly load: Load;
}

/** A server with load whose clients do as they are told: after a 503 they send the same again. */
async function startService(
  dataDir: string,
  { program = signalbox, metadataChars = 2_000 } = {},
): Promise<Service> {
  const server = await startServe([], { dataDir, program });
  const { key } = await mintKey(dataDir);
  // Memory as a disk is fast enough for the rate limit, and for a log that outgrows its checkpoints.
  const pace = { pauseMs: 3, pauseAfter503Ms: 100 };
  const load = startLoad({ url: server.url, key, metadataChars, ...pace });
  await load.more(100, 201);
  return { server, key, load };
}

interface Outage {
  /** Ends the outage again. */
  readonly begin: () => Promise<() => Promise<void>>;
  /** What the service and its log give as the reason. */
  readonly cause: RegExp;
  /** Whether the disk itself has too little room. */
  readonly isDiskFull: boolean;
}

/** More than fit into what is left of a disk, and into a log that is as long as it becomes. */
const TRIES_MAX = 20_000;

/** At the edge some signals still fit, and others do not: waits until none has for a while. */
async function untilRefused({ results, more }: Load): Promise<void> {
  const from = results.length;
  do {
    expect(results.length - from, "signals after which none was refused").toBeLessThan(TRIES_MAX);
    await more(1);
    for (const { outcome } of results.slice(-40)) {
      expect([201, 503], "answers on a full disk").toContain(outcome as number);
    }
  } while (results.slice(-40).some(({ outcome }) => outcome !== 503));
}

/** One signal may still fit where the load's, which come together, do not: but not for long. */
async function postUntilRefused(url: string, key: string): Promise<Answer> {
  for (;;) {
    const answer = await callUrl(url, "/v1/signals", {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ ...signal, metadata: { note: "x".repeat(60_000) } }),
    });
    if (answer.status !== 201) return answer;
  }
}

/** What readiness says while nothing is stored: a single signal that fits makes it green. */
async function failingHealth(dataDir: string): Promise<CliResult> {
  let health: CliResult;
  let tries = 0;
  do {
    health = await cli(["healthcheck", "--data", dataDir]);
    tries += 1;
  } while (!health.stdout.includes("writer: failing") && tries < 20);
  return health;
}

/** Nothing can be written for a while: everyone is told, and afterwards nobody has to do anything. */
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
  expect(health.stdout).toMatch(/^writer: failing \(SQLITE_/m);
  expect(health.stdout).toMatch(outage.cause);
  expect(health.stdout).toContain(outage.isDiskFull ? "disk: failing (" : "disk: ok (");

  await end();
  await load.more(100, 201);
  expect(await cli(["healthcheck", "--data", dataDir])).toMatchObject({ code: 0 });
  await server.logged("signals are stored again");
  const news = server.log().slice(linesBefore);
  const told = news.find(({ msg }) => msg.startsWith("signals were not stored: "));
  expect(told?.level).toBe("error");
  expect(told?.["free_bytes"]).toBeNumber();
  expect(told?.["reason"]).toMatch(outage.cause);
  expect(told?.msg).toContain("free some space");
  if (outage.isDiskFull) expect(told?.["free_bytes"]).toBeLessThanOrEqual(LEFT_BYTES);
  expect(news.filter(({ level }) => level === "fatal")).toEqual([]);
}

/** Everyone has an answer, the server ends cleanly, and nothing is lost. Returns what was acknowledged. */
async function expectCleanEnd({
  server,
  load,
}: Service): Promise<{ kept: number; refused: number }> {
  const results = await load.end();
  const outcomes = new Set(results.map(({ outcome }) => outcome));
  for (const outcome of outcomes) expect([200, 201, 503]).toContain(outcome as number);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(existsSync(join(server.dataDir, LOG)), "a log that was not copied").toBe(false);
  const refused = results.filter(({ outcome }) => outcome === 503).length;
  return { kept: expectKept(server.dataDir, results), refused };
}

function reportOutages(injected: string, times: number, kept: number, refused: number): void {
  report("disk full", {
    injected,
    times,
    checked: `${refused} times 503 with Retry-After, readiness red with the cause, a line with what is free and what to do; goes on by itself; none of ${kept} acknowledged is lost`,
  });
}

/** Another user of the disk takes what is left of it, and gives it back. */
function fill(root: string): Outage["begin"] {
  return async () => {
    const filler = join(root, "filler");
    const free = (): number => statfsSync(root).bavail * statfsSync(root).bsize;
    // Half of it each time: the load takes some, too.
    for (let size = 0; free() > LEFT_BYTES;) {
      const more = Math.floor(free() / 2);
      const { exitCode } = Bun.spawnSync(["fallocate", "-o", `${size}`, "-l", `${more}`, filler]);
      if (exitCode === 0) size += more;
    }
    return async () => rmSync(filler);
  };
}

/** The kernel refuses to write to files of the database, or to make them larger. */
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

/** The first of them at the least; at full scale all. */
function some<Case>(...cases: [Case, ...Case[]]): Case[] {
  return isFull ? cases : cases.slice(0, 1);
}

test.each(some("ext4", "tmpfs"))("a full %s: 503 until there is room again", async (kind) => {
  const times = scale(4, 1);
  const mounts = canMount();
  const mount = kind === "ext4" ? mountDisk : mountMemory;
  const root = mounts ? mount(DISK_MIB) : temporaryFolder();
  const service = await startService(join(root, "data"));
  const begin = mounts
    ? fill(root)
    : refuseWrites(service.server, [DATABASE, LOG, INDEX], "ENOSPC");
  const cause = /SQLITE_(FULL|IOERR_WRITE|IOERR_SHMSIZE)/;
  for (let time = 0; time < times; time += 1) {
    await expectOutage(service, { begin, cause, isDiskFull: mounts });
  }
  const { kept, refused } = await expectCleanEnd(service);
  const injected = mounts
    ? `a file fills a disk (${kind}, ${DISK_MIB} MiB) under load, and is removed`
    : `MOUNTING IS NOT ALLOWED HERE: instead of a full ${kind}, ENOSPC at every write of the database's files`;
  reportOutages(injected, times, kept, refused);
});

test.each(
  some({ error: "EDQUOT", cause: /SQLITE_IOERR_WRITE/ }, { error: "ENOSPC", cause: /SQLITE_FULL/ }),
)("$error at every write of the log: 503 until it is over", async ({ error, cause }) => {
  const times = scale(4, 1);
  const service = await startService(join(temporaryFolder(), "data"));
  const begin = refuseWrites(service.server, [LOG], error);
  for (let time = 0; time < times; time += 1) {
    await expectOutage(service, { begin, cause, isDiskFull: false });
  }
  const { kept, refused } = await expectCleanEnd(service);
  reportOutages(`${error} at every write of the log`, times, kept, refused);
});

test.each(some("ENOSPC", "EDQUOT"))(
  "%s where the log's index grows: 503 until it is over",
  async (error) => {
    const times = scale(2, 1);
    const found = { kept: 0, refused: 0 };
    for (let time = 0; time < times; time += 1) {
      // The index grows with the longest log so far, from 4,062 pages on: a server meets this once.
      const program = variantOf(checkpointingAfter(16_384));
      const dataDir = join(temporaryFolder(), "data");
      const service = await startService(dataDir, { metadataChars: 20_000, program });
      const begin = refuseWrites(service.server, [INDEX], error);
      await expectOutage(service, { begin, cause: /SQLITE_IOERR_SHMSIZE/, isDiskFull: false });
      const { kept, refused } = await expectCleanEnd(service);
      found.kept += kept;
      found.refused += refused;
    }
    reportOutages(`${error} where the log's index grows`, times, found.kept, found.refused);
  },
);

test.each(some("EDQUOT", "ENOSPC"))(
  "%s at every write of the database's file: the log takes everything meanwhile",
  async (error) => {
    const program = variantOf(checkpointingAfter(256));
    const service = await startService(join(temporaryFolder(), "data"), { program });
    const { dataDir } = service.server;
    const end = await refuseWrites(service.server, [DATABASE], error)();
    await service.load.more(300, 201);
    expect(await cli(["healthcheck", "--data", dataDir])).toMatchObject({ code: 0 });
    await end();
    await service.load.more(100, 201);
    const { kept, refused } = await expectCleanEnd(service);
    expect(refused).toBe(0);
    report("disk full", {
      injected: `${error} at every write of the database's file, in checkpoints`,
      times: 1,
      checked: `nobody is refused, the log is copied later; none of ${kept} acknowledged is lost`,
    });
  },
);
