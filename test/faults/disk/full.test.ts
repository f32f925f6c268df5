/** Full disks: 503 while there is no room, and the service goes on by itself when there is. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { cli, type CliResult, signalbox } from "../../kit/cli.ts";
import type { Load } from "../../kit/load.ts";
import { type Answer, post } from "../../kit/setup.ts";
import { fillDisk, mountDisk, mountMemory } from "../kit/disk.ts";
import { expectKept, isFull, report, scale, stop } from "../kit/faults.ts";
import { type Service as Started, underLoad } from "../kit/service.ts";
import { attachStrace } from "../kit/strace.ts";
import { checkpointingAfter, variantOf } from "../kit/variant.ts";

const DISK_MIB = 512;
/** A disk with so little left is full: some signals still fit, then none. */
const LEFT_MIB = 1;
/** More than fit into what is left, and into the longest log. */
const SIGNALS_MAX = 20_000;

type Service = Started & { readonly load: Load };

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
async function postUntilRefused({ url, key }: Service): Promise<Answer> {
  for (;;) {
    const answer = await post(url, key, { metadata: { note: "x".repeat(60_000) } });
    if (answer.status !== 201) return answer;
  }
}

/** Asks again while a single signal that fits makes readiness green. */
async function failingHealth(dataDir: string): Promise<CliResult> {
  for (let tries = 1; ; tries += 1) {
    const health = await cli(["healthcheck", "--data", dataDir]);
    if (health.stdout.includes("writer: failing") || tries === 20) return health;
  }
}

/** The reason that health and log must give. */
interface Told {
  readonly cause: RegExp;
  readonly isDiskFull: boolean;
}

/** During the outage clients and operators are told; after it the service goes on without help. */
async function expectOutage(
  service: Service,
  begin: () => Promise<() => unknown>,
  { cause, isDiskFull }: Told,
): Promise<void> {
  const { server, dataDir, load } = service;
  expect(await cli(["healthcheck", "--data", dataDir])).toMatchObject({ code: 0 });
  const linesBefore = server.log().length;
  const end = await begin();
  await untilRefused(load);

  const refusal = await postUntilRefused(service);
  expect(refusal.status).toBe(503);
  expect(refusal.headers.get("Retry-After")).toMatch(/^[1-9]\d*$/);

  const health = await failingHealth(dataDir);
  expect(health.code).toBe(1);
  expect(health.stdout).toMatch(/^writer: failing \(Signals are not being stored since /m);
  expect(health.stdout).toMatch(/: the disk (is full|refuses writes)/);
  expect(health.stdout).toContain(isDiskFull ? "disk: failing (" : "disk: ok (");

  await end();
  await load.more(100, 201);
  expect(await cli(["healthcheck", "--data", dataDir])).toMatchObject({ code: 0 });
  await server.logged("signals are stored again");
  const news = server.log().slice(linesBefore);
  const told = news.find(({ msg }) => msg.startsWith("signals were not stored: "));
  expect(told?.level).toBe("error");
  expect(told?.["free_bytes"]).toBeNumber();
  expect(told?.["error"]).toMatch(cause);
  expect(told?.msg).toContain("free some space");
  if (isDiskFull) expect(told?.["free_bytes"]).toBeLessThanOrEqual(LEFT_MIB * 1024 * 1024);
  expect(news.filter(({ level }) => level === "fatal")).toEqual([]);
}

/** Every request has an answer, the server ends cleanly, and no acknowledged signal is lost. */
async function expectCleanEnd(name: string, times: number, { server, load, dataDir }: Service) {
  const results = await load.end();
  const outcomes = new Set(results.map(({ outcome }) => outcome));
  for (const outcome of outcomes) expect([200, 201, 503]).toContain(outcome as number);
  await stop(server);
  expect(existsSync(join(dataDir, "signalbox.db-wal")), "a log that is left").toBe(false);
  const refused = results.filter(({ outcome }) => outcome === 503).length;
  report(name, times, `${expectKept(dataDir, results)} signals kept, ${refused} times 503`);
  return refused;
}

/** The kernel refuses to write to this file, or to make it longer. Returns how to end it. */
async function refuseWrites({ server, dataDir }: Service, file: string, error: string) {
  const injected = `inject=pwrite64,ftruncate,fallocate:error=${error}`;
  const { detach } = await attachStrace(server.pid, ["-e", injected, "-P", join(dataDir, file)]);
  return async () => expect(await detach()).toBeGreaterThan(0);
}

/** A server under load; after a 503 its clients send the same signal again. */
function startService(dataDir?: string, { program = signalbox, metadataChars = 2_000 } = {}) {
  // On a disk in memory, a faster load would reach the rate limit or outgrow the checkpoints.
  const load = { metadataChars, pauseMs: 3, pauseAfter503Ms: 100 };
  return underLoad({ ...(dataDir === undefined ? {} : { dataDir }), args: [], program, load });
}

/** All cases at full scale, otherwise the first. */
function some<Case>(...cases: [Case, ...Case[]]): Case[] {
  return isFull ? cases : cases.slice(0, 1);
}

const TIMES = scale(4, 1);

test.each(some("ext4", "tmpfs"))("a full %s: 503 until there is room again", async (kind) => {
  const root = kind === "ext4" ? mountDisk(DISK_MIB) : mountMemory(DISK_MIB);
  const service = await startService(join(root, "data"));
  const told = { cause: /SQLITE_(FULL|IOERR_WRITE|IOERR_SHMSIZE)/, isDiskFull: true };
  for (let time = 0; time < TIMES; time += 1) {
    await expectOutage(service, async () => fillDisk(root, LEFT_MIB), told);
  }
  await expectCleanEnd(`a full ${kind}`, TIMES, service);
});

interface Refusal {
  readonly error: string;
  readonly file: string;
  readonly cause: RegExp;
  readonly times?: number;
  readonly program?: () => readonly string[];
  readonly metadataChars?: number;
}

const everyWrite = { name: "at every write of the log", file: "signalbox.db-wal", times: TIMES };
// The index grows when the log first exceeds 4,062 pages: once per server.
const growth = {
  name: "when the log's index grows",
  file: "signalbox.db-shm",
  cause: /SQLITE_IOERR_SHMSIZE/,
  program: () => variantOf(checkpointingAfter(16_384)),
  metadataChars: 20_000,
};
const refusals: (Refusal & { name: string })[] = [
  ...some(
    { ...everyWrite, error: "EDQUOT", cause: /SQLITE_IOERR_WRITE/ },
    { ...everyWrite, error: "ENOSPC", cause: /SQLITE_FULL/ },
  ),
  ...some("ENOSPC", "EDQUOT", "ENOSPC", "EDQUOT").map((error) => ({ ...growth, error })),
];

test.each(refusals)(
  "$error $name: 503 until it is over",
  async ({ error, name, file, cause, times = 1, program = () => signalbox, metadataChars }) => {
    const chars = metadataChars === undefined ? {} : { metadataChars };
    const service = await startService(undefined, { program: program(), ...chars });
    for (let time = 0; time < times; time += 1) {
      const begin = () => refuseWrites(service, file, error);
      await expectOutage(service, begin, { cause, isDiskFull: false });
    }
    await expectCleanEnd(`${error} ${name}`, times, service);
  },
);

test.each(some("EDQUOT", "ENOSPC"))(
  "%s at every write of the database's file: the log takes every signal meanwhile",
  async (error) => {
    const program = variantOf(checkpointingAfter(256));
    const service = await startService(undefined, { program });
    const end = await refuseWrites(service, "signalbox.db", error);
    await service.load.more(300, 201);
    expect(await cli(["healthcheck", "--data", service.dataDir])).toMatchObject({ code: 0 });
    await end();
    await service.load.more(100, 201);
    expect(await expectCleanEnd(`${error} at every checkpoint`, 1, service)).toBe(0);
  },
);
