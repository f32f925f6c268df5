/** The machine's clock steps under a running server, and between two runs. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { DAY_MS, HOUR_MS } from "../../../src/lib/text/time.ts";
import { makeCertificate, writeCertificate } from "../../kit/certificates.ts";
import { cli, sendHalf, startServe } from "../../kit/cli.ts";
import { openForDamage, post, query, temporaryFolder } from "../../kit/setup.ts";
import { startClock, type TestClock } from "../kit/clock.ts";
import { expectKept, isFull, report, scale, stop } from "../kit/faults.ts";
import { type Service, startService, underLoad } from "../kit/service.ts";

/** Distances from the machine's clock, one after the other: small and large steps in both directions. */
const OFFSETS = [-HOUR_MS, DAY_MS, 0, 2_000, DAY_MS, -HOUR_MS, -DAY_MS, 0].slice(0, scale(8, 3));
const LOOPS = scale(4, 1);
const steps = Array.from({ length: LOOPS }, () => OFFSETS).flat();

/** The library rounds. */
const ROUNDING_MS = 2;
/** How often a key's last use is written. */
const LAST_USED_INTERVAL_MS = 60_000;

/** After each step: received_at, deduplication, last use and health are right. */
async function expectInStep(
  { url, dataDir, key, keyId }: Service,
  clock: TestClock,
  clientId: string,
): Promise<void> {
  const before = clock.now();
  const { status, body } = await post(url, key, { client_signal_id: clientId });
  const after = clock.now();
  expect(status).toBe(201);
  expect(body["received_at"]).toBeGreaterThanOrEqual(before - ROUNDING_MS);
  expect(body["received_at"]).toBeLessThanOrEqual(after + ROUNDING_MS);

  const [original] = query<{ id: string; clientId: string }>(
    dataDir,
    "SELECT id, client_signal_id AS clientId FROM signals ORDER BY seq LIMIT 1",
  );
  const repeat = await post(url, key, { client_signal_id: original?.clientId });
  expect([repeat.status, repeat.body]).toEqual([200, { id: original?.id, deduped: true }]);

  const [row] = query<{ usedAt: number }>(
    dataDir,
    "SELECT last_used_at AS usedAt FROM api_keys WHERE id = ?",
    keyId,
  );
  expect(Math.abs((row?.usedAt ?? 0) - after)).toBeLessThanOrEqual(LAST_USED_INTERVAL_MS);
  const health = await cli(["healthcheck", "--data", dataDir], { env: clock.env });
  expect([health.code, health.stdout]).toEqual([0, expect.stringContaining("writer: ok")]);
}

test("the clock steps under load: ids rise and duplicates are found", async () => {
  const clock = startClock();
  const crowd = { connections: 16, reuse: "mixed" } as const;
  const service = await underLoad({ env: clock.env, load: crowd });
  const { dataDir, load } = service;
  for (const [index, offset] of steps.entries()) {
    clock.set(offset);
    await load.more(100, 201);
    await expectInStep(service, clock, `step-${index}`);
  }
  const results = await load.end();
  expect(results.filter(({ outcome }) => outcome !== 201)).toEqual([]);
  await stop(service.server);
  expectSteps(dataDir);
  report("clock under load", steps.length, `${expectKept(dataDir, results)} answers kept, all 201`);
});

test("the clock steps between two runs, ended by SIGTERM and by SIGKILL", async () => {
  const clock = startClock();
  const crowd = { connections: 16, reuse: "mixed", retry: true } as const;
  const service = await underLoad({ env: clock.env, load: crowd });
  const { dataDir, load } = service;
  for (const [index, offset] of steps.entries()) {
    service.server.kill(index % 2 === 0 ? "SIGTERM" : "SIGKILL");
    await service.server.exited;
    clock.set(offset);
    await service.restart();
    await load.more(100, 201);
    await expectInStep(service, clock, `step-${index}`);
  }
  await load.end();
  await stop(service.server);
  expectSteps(dataDir);
  report("clock between runs", steps.length, `${expectKept(dataDir, load.results)} answers kept`);
});

/** A control: some signals were stored at an earlier time than the one before. */
function expectSteps(dataDir: string): void {
  const rows = query<{ receivedAt: number }>(
    dataDir,
    "SELECT received_at AS receivedAt FROM signals ORDER BY seq",
  );
  const times = rows.map(({ receivedAt }) => receivedAt);
  const steppedBack = times.filter((time, index) => time < (times[index - 1] ?? 0) - HOUR_MS / 2);
  expect(steppedBack.length).toBeGreaterThanOrEqual(LOOPS);
}

test("limits of time and rates find signals that came after a forward step of ten years", async () => {
  const clock = startClock();
  const { dataDir, url, key, keyId: id } = await startService({ env: clock.env });
  for (const offset of [3_650 * DAY_MS, 0, -HOUR_MS]) {
    clock.set(offset);
    const before = clock.now();
    expect((await post(url, key)).status).toBe(201);
    const since = new Date(before - 1_000).toISOString();
    const until = new Date(before + 10_000).toISOString();
    const list = ["signals", "list", "--since", since, "--until", until, "--key", id, "--json"];
    const { stdout } = await cli([...list, "--data", dataDir], { env: clock.env });
    expect([offset, stdout.trim().split("\n").length]).toEqual([offset, 1]);
    const status = await cli(["status", "--json", "--data", dataDir], { env: clock.env });
    expect(JSON.parse(status.stdout)).toMatchObject({ rate: { last_minute: 1 } });
    expect(status.stdout.includes("ahead of this machine's clock")).toBe(offset <= 0);
  }
});

test("keys expire by the wall clock", async () => {
  const clock = startClock();
  const dataDir = join(temporaryFolder(), "data");
  const options = { env: clock.env };
  expect((await cli(["desk", "create", "alpha", "--data", dataDir], options)).code).toBe(0);
  const mint = ["key", "mint", "--desk", "alpha", "--expires", "12h", "--data", dataDir];
  const key = (await cli(mint, options)).stdout.trim();
  const expected = [
    [0, 201, "active"],
    [DAY_MS, 401, "expired"],
    [-HOUR_MS, 201, "active"],
    [11 * HOUR_MS, 201, "active"],
    [13 * HOUR_MS, 401, "expired"],
  ] as const;
  const server = await startServe([], { dataDir, ...options });
  for (const [offset, status, state] of expected) {
    clock.set(offset);
    expect([offset, (await post(server.url, key)).status]).toEqual([offset, status]);
    const list = await cli(["key", "list", "--json", "--data", dataDir], options);
    expect(JSON.parse(list.stdout)).toMatchObject([{ state }]);
  }
  report("expiring keys", expected.length, "201 before the end, 401 after it");
});

test("the rate limit follows real time", async () => {
  const clock = startClock();
  const rate = 100;
  const { url, key } = await startService({ args: ["--rate-limit", `${rate}`], env: clock.env });
  const counts = { 201: 0, 429: 0 };
  const startedAt = performance.now();
  const sendMany = async (): Promise<void> => {
    for (let sent = 0; sent < 3 * rate; sent += 50) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => post(url, key)));
      for (const { status, headers } of answers) {
        if (status === 429) expect(headers.get("retry-after")).toBe("1");
        counts[status as 201 | 429] += 1;
      }
    }
  };
  await sendMany();
  for (const offset of steps) {
    clock.set(offset);
    await sendMany();
  }
  const passedS = (performance.now() - startedAt) / 1_000;
  expect(counts[201]).toBeLessThanOrEqual(2 * rate + passedS * rate);
  expect(counts[429]).toBeGreaterThan(0);
  while ((await post(url, key)).status !== 201) await Bun.sleep(10);
  report("clock and rate limit", steps.length, `201: ${counts[201]}, 429: ${counts[429]}`);
});

// On the wall clock, a step forward would end a wait at once, and a step back would prolong it.
const stops = [
  [DAY_MS, -HOUR_MS],
  [-HOUR_MS, DAY_MS],
].slice(0, scale(2, 1)) as [number, number][];

test("request and stop timeouts follow real time", async () => {
  for (const [whilePatient, whileHurried] of stops) {
    await expectPatience(whilePatient);
    await expectDeadline(whileHurried);
  }
  report("timeouts beside clock steps", 3 * stops.length, "real time counts");
});

async function expectPatience(offset: number): Promise<void> {
  const clock = startClock();
  const args = ["--stop-timeout", "10m"];
  const { server, key } = await startService({ args, env: clock.env });
  const beforeStop = await sendHalf(server.url, key);
  const inStop = await sendHalf(server.url, key);
  expect((await post(server.url, key)).status).toBe(201);
  clock.set(offset);
  await beforeStop.finish();
  expect(await beforeStop.closed).toContain("HTTP/1.1 201");
  clock.set(0);
  server.kill("SIGTERM");
  await server.logged("stopping");
  clock.set(offset);
  await inStop.finish();
  expect(await inStop.closed).toContain("HTTP/1.1 201");
  expect(await server.exited).toBe(0);
  expect(server.output.stderr).not.toContain("cut the connections");
}

async function expectDeadline(offset: number): Promise<void> {
  const clock = startClock();
  const args = ["--stop-timeout", "300ms"];
  const { server, key } = await startService({ args, env: clock.env });
  const unfinished = await sendHalf(server.url, key);
  expect((await post(server.url, key)).status).toBe(201);
  server.kill("SIGTERM");
  await server.logged("stopping");
  clock.set(offset);
  expect(await server.exited).toBe(0);
  expect(await unfinished.closed).not.toContain("201");
  expect(server.output.stderr).toContain("cut the connections");
}

test("health is red only while there is a reason", async () => {
  const clock = startClock();
  const now = clock.now();
  const validity = { from: new Date(now - DAY_MS), to: new Date(now + DAY_MS / 2) };
  const certificate = await makeCertificate("a", validity);
  const { certFile, keyFile } = writeCertificate(temporaryFolder(), certificate);
  const tls = ["--tls-cert", certFile, "--tls-key", keyFile];
  const { dataDir } = await startServe(tls, { env: clock.env });
  const health = () => cli(["healthcheck", "--data", dataDir]);
  for (const offset of steps) {
    clock.set(offset);
    const { code, stdout } = await health();
    const isExpired = offset > DAY_MS / 2;
    expect([offset, code]).toEqual([offset, isExpired ? 1 : 0]);
    expect(stdout).toContain(`certificate: ${isExpired ? "failing" : "ok"}`);
    expect(stdout).toContain("writer: ok");
  }
  if (isFull) await Promise.all([-HOUR_MS, DAY_MS].map(expectProblemForgotten));
  report("health beside clock steps", steps.length, "red after the end of the certificate only");
});

/** Without new signals, a problem is shown for 10 s of real time: slow, so only at full scale. */
async function expectProblemForgotten(offset: number): Promise<void> {
  const clock = startClock();
  const { dataDir, url, key } = await startService({ env: clock.env });
  const other = openForDamage(dataDir);
  other.run("BEGIN IMMEDIATE");
  expect((await post(url, key)).status).toBe(503);
  other.run("ROLLBACK");
  clock.set(offset);
  const health = () => cli(["healthcheck", "--data", dataDir]);
  expect((await health()).stdout).toContain("writer: failing");
  while ((await health()).code !== 0) await Bun.sleep(200);
}
