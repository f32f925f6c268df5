/** A disk that is slow to sync: a bounded queue, prompt refusals, and recovery. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { cli } from "../../kit/cli.ts";
import { startLoad } from "../../kit/load.ts";
import { scrape } from "../../ops/_metrics.ts";
import { expectKept, memoryMib, report, scale, stop } from "../kit/faults.ts";
import { underLoad } from "../kit/service.ts";
import { attachStrace } from "../kit/strace.ts";
import { post } from "../../kit/setup.ts";

/** Together, bodies of 60 KB on so many connections exceed the queue (32 Mi characters: 559 bodies). */
const FLOOD_CONNECTIONS = scale(2_000, 1_000);
const FLOOD_METADATA_CHARS = 60_000;
/** Measured: 340 to 550 MiB; without a bound on the queue 815 MiB with 2,000 connections. */
const MEMORY_MIB_MAX = 640;

/** How long an fsync takes. */
const DELAY_MS = scale(2_000, 1_500);

/** https://docs.kernel.org/filesystems/proc.html, clear_refs. */
function resetMemoryPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

/** Refusals do not wait for the disk: they overtake a signal that is being stored. */
async function expectRefusalsMeanwhile(url: string, key: string): Promise<void> {
  const overtaken: string[] = [];
  const fields = { client_signal_id: crypto.randomUUID() };
  const stored = post(url, key, fields).finally(() => overtaken.push("stored"));
  for (let round = 0; round < 3; round += 1) {
    expect((await post(url, `sbk_${"0".repeat(64)}`)).status).toBe(401);
    expect((await post(url, key, { side: "sideways" })).status).toBe(422);
  }
  overtaken.push("refused");
  expect((await stored).status).toBe(201);
  expect(overtaken).toEqual(["refused", "stored"]);
}

/** Of ten copies at once, one is stored, and the others get its id. */
async function expectOneOriginal(url: string, key: string, clientId: string): Promise<void> {
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => post(url, key, { client_signal_id: clientId })),
  );
  const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
  expect(statuses).toEqual([...Array.from({ length: 9 }, () => 200), 201]);
  expect(new Set(answers.map((answer) => answer.body["id"])).size).toBe(1);
}

test("an fsync takes seconds: the queue is bounded, refusals are prompt, and the server recovers", async () => {
  const crowd = { connections: FLOOD_CONNECTIONS, metadataChars: FLOOD_METADATA_CHARS };
  const { server, url, key, dataDir, ...service } = await underLoad({
    load: { ...crowd, prefix: "flood", pauseAfter503Ms: 500 },
    signals: FLOOD_CONNECTIONS / 2,
  });
  const { pid } = server;
  const flood = service.load;
  const honest = startLoad({ url, key, connections: 4, prefix: "honest", pauseAfter503Ms: 500 });

  const before = flood.results.length;
  const delay = `inject=fsync,fdatasync:delay_enter=${DELAY_MS}ms`;
  const { detach } = await attachStrace(pid, ["-e", delay]);
  resetMemoryPeak(pid);
  for (let round = 0; round < scale(4, 1); round += 1) {
    await Promise.all([
      expectRefusalsMeanwhile(url, key),
      expectOneOriginal(url, key, `one-${round}`),
      honest.more(4, 201),
    ]);
    // /metrics does not wait for the disk either.
    const { samples } = await scrape(dataDir);
    expect(samples.get("signalbox_queue_signals")).toBeGreaterThan(0);
  }
  const times = await detach();
  expect(times).toBeGreaterThan(0);
  const refusedMeanwhile = flood.results.slice(before).filter(({ outcome }) => outcome === 503);
  expect(refusedMeanwhile.length).toBeGreaterThan(FLOOD_CONNECTIONS / 2);

  await flood.more(FLOOD_CONNECTIONS, 201);
  const peakMib = memoryMib(pid, "VmHWM");
  expect(peakMib).toBeLessThan(MEMORY_MIB_MAX);
  const results = [...(await honest.end()), ...(await flood.end())];
  expect(await cli(["healthcheck", "--data", dataDir])).toMatchObject({ code: 0 });
  expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set([201, 503]));
  await stop(server);
  const kept = expectKept(dataDir, results);
  const refusals = results.filter(({ outcome }) => outcome === 503).length;
  report("slow disk", times, `${refusals} times 503, at most ${peakMib} MiB; ${kept} signals kept`);
});
