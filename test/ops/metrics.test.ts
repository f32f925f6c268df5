/** `/metrics`, and what is made of it: the alert rules, the dashboard and docs/metrics.md. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { pino } from "pino";
import { AppError } from "../../src/domain/errors.ts";
import type { StorageFigures } from "../../src/domain/storage/figures.ts";
import { DAY_MS } from "../../src/lib/text/time.ts";
import { Metrics } from "../../src/ops/metrics/metrics.ts";
import { emptySignal } from "../store/_signal.ts";
import { RequestMetrics } from "../../src/ops/metrics/requests.ts";
import { DESKS_MAX, KEYS_MAX } from "../../src/ops/metrics/text.ts";
import { VERSION } from "../../src/lib/version.ts";
import { makeCertificate, writeCertificate } from "../kit/certificates.ts";
import { mintKey as mintByCommand, startServe } from "../kit/cli.ts";
import { readFeed, startFeedApp } from "../feed/_feed.ts";
import { metricsIn, readRules, scrape } from "./_metrics.ts";
import {
  callUrl,
  mintKey,
  openForDamage,
  posting,
  signal,
  startTestApp,
  temporaryFolder,
  trusting,
} from "../kit/setup.ts";
import { recordsIn } from "../kit/records.ts";

const START = Date.UTC(2026, 10, 22, 12);

/** The values of one metric by their labels, without zeros. */
async function valuesOf(dataDir: string, metric: string): Promise<Record<string, number>> {
  const { samples } = await scrape(dataDir);
  const found = [...samples].filter(
    ([series, value]) => (series === metric || series.startsWith(`${metric}{`)) && value !== 0,
  );
  return Object.fromEntries(found.map(([series, value]) => [series.slice(metric.length), value]));
}

describe("requests", () => {
  test("are counted by status, and refusals by error and by field", async () => {
    const { dataDir, post, call, registry, keyId } = await startTestApp();
    await post({ ...signal, client_signal_id: "one" });
    await post({ ...signal, client_signal_id: "one" });
    await post({ ...signal, client_signal_id: "one", price: 5 });
    await post({ ...signal, side: "sideways", sied: "open", seid: "open" });
    await post("{");
    await post(signal, { Authorization: "Bearer nothing" });
    await post(signal, { Authorization: `Bearer sbk_${"0".repeat(64)}` });
    await call("/nowhere");
    await registry.revokeKey(keyId);
    await post(signal);
    expect(await valuesOf(dataDir, "signalbox_requests_total")).toEqual({
      '{status="201"}': 1,
      '{status="200"}': 2,
      '{status="422"}': 1,
      '{status="400"}': 1,
      '{status="401"}': 3,
      '{status="404"}': 1,
    });
    expect(await valuesOf(dataDir, "signalbox_rejects_total")).toEqual({
      '{error="validation_failed"}': 1,
      '{error="bad_request"}': 1,
      '{error="unauthorized"}': 3,
      '{error="not_found"}': 1,
    });
    expect(await valuesOf(dataDir, "signalbox_invalid_fields_total")).toEqual({
      '{field="side"}': 1,
      '{field="unknown"}': 1,
    });
    expect(await valuesOf(dataDir, "signalbox_unknown_key_requests_total")).toEqual({ "": 2 });
    const sources = await valuesOf(dataDir, "signalbox_unknown_key_source_requests_total");
    expect(Object.values(sources).reduce((sum, count) => sum + count)).toBe(2);
    expect(Object.keys(sources)[0]).toMatch(
      /^\{address="127\.0\.0\.1",key_hash="([0-9a-f]{12}|none)"\}$/,
    );
    expect(await valuesOf(dataDir, "signalbox_duplicates_total")).toEqual({ "": 2 });
    expect(await valuesOf(dataDir, "signalbox_differing_duplicates_total")).toEqual({ "": 1 });
    expect(await valuesOf(dataDir, "signalbox_desk_requests_total")).toEqual({
      '{desk="alpha",outcome="stored"}': 1,
      '{desk="alpha",outcome="duplicate"}': 2,
      '{desk="alpha",outcome="rejected"}': 3,
    });
  });

  test("wait in the queue, are failed if they cannot be stored, and then the writer is not ready", async () => {
    const { dataDir, post } = await startTestApp();
    const other = openForDamage(dataDir);
    other.run("BEGIN IMMEDIATE");
    const refused = post(signal);
    while ((await scrape(dataDir)).samples.get("signalbox_queue_signals") !== 1) await Bun.sleep(1);
    expect(await valuesOf(dataDir, "signalbox_queue_usage_ratio")).toEqual({ "": 1 / 10_000 });
    expect((await refused).status).toBe(503);
    const { samples } = await scrape(dataDir);
    expect(samples.get('signalbox_desk_requests_total{desk="alpha",outcome="failed"}')).toBe(1);
    expect(samples.get('signalbox_requests_total{status="503"}')).toBe(1);
    expect(samples.get('signalbox_ready{check="writer"}')).toBe(0);
    expect(samples.get("signalbox_transaction_duration_seconds_count")).toBe(0);
    other.run("ROLLBACK");
    await post(signal);
    const after = await scrape(dataDir);
    expect(after.samples.get('signalbox_ready{check="writer"}')).toBe(1);
    expect(after.samples.get("signalbox_transaction_duration_seconds_count")).toBe(1);
  });

  test("record their duration, their clock's skew, and the size and times of their transaction", async () => {
    const { dataDir, post } = await startTestApp({ now: () => START });
    await post({ ...signal, signal_time: START - 2_500 });
    await post({ ...signal, signal_time: START + 500 });
    await post(signal);
    const { samples } = await scrape(dataDir);
    expect(samples.get("signalbox_request_duration_seconds_count")).toBe(3);
    expect(samples.get("signalbox_clock_skew_seconds_count")).toBe(2);
    expect(samples.get("signalbox_clock_skew_seconds_sum")).toBe(2);
    expect(samples.get('signalbox_clock_skew_seconds_bucket{le="-0.1"}')).toBe(1);
    expect(samples.get('signalbox_clock_skew_seconds_bucket{le="1"}')).toBe(1);
    expect(samples.get('signalbox_clock_skew_seconds_bucket{le="5"}')).toBe(2);
    expect(samples.get("signalbox_batch_signals_sum")).toBe(3);
    const [transaction = 0, commit = 0] = ["transaction", "commit"].map((what) =>
      samples.get(`signalbox_${what}_duration_seconds_sum`),
    );
    expect(commit).toBeGreaterThan(0);
    expect(transaction).toBeGreaterThan(commit);
    expect(samples.get("signalbox_queue_signals")).toBe(0);
  });
});

test("requests for the feed are counted by status, on the socket too, and while they wait", async () => {
  const { dataDir, feedUrl, read, readKey, store } = await startFeedApp();
  const count = async (labels: string) =>
    (await scrape(dataDir)).samples.get(`signalbox_feed_requests_total${labels}`);
  expect(await count('{status="401"}')).toBe(0);
  await read();
  await readFeed(feedUrl, readKey, { limit: 0 });
  await readFeed(feedUrl, null);
  await fetch("http://localhost/feed", { unix: join(dataDir, "ops.sock") });
  expect(await count('{status="200"}')).toBe(2);
  expect(await count('{status="422"}')).toBe(1);
  expect(await count('{status="401"}')).toBe(1);
  const waiting = async () =>
    (await scrape(dataDir)).samples.get("signalbox_feed_requests_waiting");
  expect(await waiting()).toBe(0);
  const answer = read({ wait: 60 });
  while ((await waiting()) !== 1) await Bun.sleep(5);
  await store();
  await answer;
  expect(await waiting()).toBe(0);
  expect(await count('{status="200"}')).toBe(3);
});

describe("desks and keys", () => {
  test("of all keys that sent a signal, the process remembers a thousand", () => {
    const requests = new RequestMetrics();
    const appended = { id: "", deduped: false } as const;
    for (let n = 0; n < 3_000; n += 1) {
      const owner = { keyId: `key-${n}`, deskId: 1, deskName: "alpha" };
      const sent = { requestId: "", receivedAt: n, signal: emptySignal };
      requests.accepted(owner, { ...sent, appended, durationMs: 1 });
    }
    expect([0, 1_999, 2_000, 2_999].map((n) => requests.lastUseOf(`key-${n}`))).toEqual([
      null,
      null,
      2_000,
      2_999,
    ]);
  });

  test("have the time of their latest signal, across a restart and a rename", async () => {
    const time = { at: START };
    const dataDir = temporaryFolder();
    const first = await startTestApp({ dataDir, now: () => time.at });
    await mintKey(first.registry, "silent");
    await first.post({ ...signal, client_signal_id: "one" });
    time.at += 1_000;
    await first.post({ ...signal, client_signal_id: "one" });
    const desk = "signalbox_desk_latest_signal_timestamp_seconds";
    const key = "signalbox_key_latest_signal_timestamp_seconds";
    const keyLabels = (name: string) => `{desk="${name}",key_id="${first.keyId}"}`;
    // A duplicate is a sign of life of the key, and no new signal of the desk.
    expect(await valuesOf(dataDir, desk)).toEqual({ '{desk="alpha"}': START / 1_000 });
    expect(await valuesOf(dataDir, key)).toEqual({ [keyLabels("alpha")]: START / 1_000 + 1 });
    await first.registry.renameDesk("alpha", "omega");
    await first.stop();
    await startTestApp({ dataDir, now: () => time.at });
    expect(await valuesOf(dataDir, desk)).toEqual({ '{desk="omega"}': START / 1_000 });
    expect(await valuesOf(dataDir, key)).toEqual({ [keyLabels("omega")]: START / 1_000 });
  });

  test("that are archived or revoked have no series", async () => {
    const { dataDir, post, registry, keyId } = await startTestApp();
    await post(signal);
    const series = async () =>
      [...(await scrape(dataDir)).samples.keys()].filter((name) => name.includes('desk="alpha"'));
    expect((await series()).length).toBe(7);
    await registry.revokeKey(keyId);
    expect((await series()).length).toBe(6);
    await registry.archiveDesk("alpha", true);
    expect(await series()).toEqual([]);
  });

  test("beyond a limit are left out, and counted", async () => {
    const { dataDir, post } = await startTestApp();
    await post(signal);
    const db = openForDamage(dataDir);
    db.run("PRAGMA synchronous = OFF");
    const registry = recordsIn(db).registry;
    for (let index = 0; index <= DESKS_MAX; index++) {
      for (let each = 0; each < 3; each++) await mintKey(registry, `desk-${index}`);
    }
    const { samples } = await scrape(dataDir);
    expect(samples.get("signalbox_desks_left_out")).toBe(2);
    expect(samples.get("signalbox_keys_left_out")).toBe(1 + 3 * (DESKS_MAX + 1) - KEYS_MAX);
    const labelled = [...samples.keys()].filter((name) => name.includes('desk="'));
    // Each desk has four outcomes; the oldest is the only one with a signal, and so is its key.
    expect(labelled.length).toBe(DESKS_MAX * 5 + 2);
    expect(labelled.filter((name) => name.includes('"alpha"')).length).toBe(7);
  });
});

describe("/metrics", () => {
  test("is in Prometheus' text format, with help and a type for each metric", async () => {
    const { dataDir, post } = await startTestApp();
    await post(signal);
    const { contentType, samples, types, text } = await scrape(dataDir);
    expect(contentType).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(text.endsWith("\n")).toBe(true);
    const nameless = [...samples.keys()].filter((series) => {
      const [name = ""] = series.split("{");
      return !types.has(name) && !types.has(name.replace(/_(?:bucket|sum|count)$/, ""));
    });
    expect(nameless).toEqual([]);
    expect(text.match(/^# HELP /gm)?.length).toBe(types.size);
    const info = `signalbox_build_info{version="${VERSION}",bun="${Bun.version}"}`;
    expect(samples.get(info)).toBe(1);
  });

  test("is on --ops-listen, for GET alone", async () => {
    const { app } = await startTestApp({ config: { opsListen: { host: "127.0.0.1", port: 0 } } });
    const url = `http://127.0.0.1:${app.opsAddress?.port}/metrics`;
    const answer = await fetch(url);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain("signalbox_requests_total");
    expect((await fetch(url, { method: "POST" })).status).toBe(404);
    expect((await fetch(`${url}/`)).status).toBe(404);
  });

  test("has no key, no label and nothing that a client made up", async () => {
    const { dataDir, post, key, keyId, registry } = await startTestApp();
    await registry.relabelKey(keyId, "label-of-the-key");
    const made = { symbol: "MADE-UP", client_signal_id: "made-up", metadata: { made: "up" } };
    await post({ ...signal, ...made });
    await post({ ...signal, ...made, 'made_up_{}"\n': 1, [key]: 2 });
    await post(signal, { Authorization: `Bearer ${key.slice(0, -1)}x` });
    const { text } = await scrape(dataDir);
    for (const secret of [/made.?up/i, /label-of/, /sbk_/, key.slice(4, 20), key.slice(-8)]) {
      expect(text).not.toMatch(secret);
    }
    expect(text).toContain(keyId);
  });

  test("is made once for callers that ask at the same time", async () => {
    let reads = 0;
    const answer = Promise.withResolvers<StorageFigures>();
    const sources = {
      ...withoutServer,
      storage: {
        queue: { depth: 0, usage: 0, outage: null },
        figures: () => {
          reads += 1;
          return answer.promise;
        },
      },
    };
    const metrics = new Metrics(silent);
    const asked = Array.from({ length: 20 }, () => metrics.text(sources));
    answer.resolve(figures);
    expect(new Set(await Promise.all(asked)).size).toBe(1);
    expect(reads).toBe(1);
    await metrics.text(sources);
    expect(reads).toBe(2);
  });

  test("leaves out what has ended or cannot be read", async () => {
    const metrics = new Metrics(silent);
    const before = namesIn(await metrics.text(withServer));
    const text = await metrics.text({
      ...withoutServer,
      storage: failing(new AppError("unavailable")),
    });
    expect(text).toContain("signalbox_queue_signals 7\n");
    const ended = /^signalbox_(database|log|desks?|keys?|certificate|acme|backup)_/;
    expect(before.filter((name) => ended.test(name))).toHaveLength(21);
    expect(namesIn(text).filter((name) => ended.test(name))).toEqual([]);
  });

  test("logs a defect once, until it changes, and not a database that is busy", async () => {
    const { log, lines } = remember();
    const metrics = new Metrics(log);
    const readWith = (error: Error) => metrics.text({ ...withoutServer, storage: failing(error) });
    await readWith(new AppError("unavailable"));
    for (const reason of ["one", "one", "other"]) await readWith(new Error(reason));
    await metrics.text(withServer);
    await readWith(new Error("other"));
    expect(lines.map(({ level, msg, err }) => [level, msg, err.message])).toEqual(
      ["one", "other", "other"].map((reason) => [
        50,
        "the database's metrics cannot be read",
        reason,
      ]),
    );
  });
});

const figures: StorageFigures = {
  databaseBytes: 1,
  logBytes: 2,
  desks: [{ id: 1, name: "alpha", createdAt: START, latestSignalAt: START }],
  desksTotal: 1,
  keys: [{ id: "KEY", desk: "alpha", lastUsedAt: START }],
  keysTotal: 1,
  keysExpiring: 0,
};

/** Storage whose figures cannot be read. */
function failing(error: Error) {
  const figuresOf = (): StorageFigures => {
    throw error;
  };
  return { queue: { depth: 7, usage: 0.5, outage: null }, figures: figuresOf };
}

/** The names of a text's series. */
function namesIn(text: string): string[] {
  const names = text.match(/^[a-z_]+(?=[{ ])/gm) ?? [];
  return [...new Set(names)];
}

const silent = pino({ level: "silent" });

/** A log, and its lines. */
function remember() {
  const lines: { level: number; msg: string; err: Error }[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]);
  return { log: pino({}, { write }), lines };
}

const withoutServer = {
  dataDir: import.meta.dir,
  now: () => START,
  ready: () => Promise.resolve({ checks: {} }),
  certificate: () => null,
  status: () => ({
    version: VERSION,
    pid: 1,
    started_at: START,
    listen: null,
    console_listen: null,
    read_listen: null,
    ops_listen: null,
    public_url: null,
    feed_url: null,
    console_url: null,
    certificate_expires_at: null,
    acme: null,
    backups: null,
  }),
  feed: { waiting: 0 },
};

const made = { file: "signalbox.db", at: START };

/** Sources that have a value for every gauge. */
const withServer = {
  ...withoutServer,
  certificate: () => ({ startsAt: START, expiresAt: START + DAY_MS }),
  status: () => ({
    ...withoutServer.status(),
    acme: {
      domains: ["signals.test"],
      missing: [],
      directory: "https://directory.test",
      http_listen: "127.0.0.1:80",
      failure: null,
      next_attempt_at: START,
      held_until: null,
      is_listening: true,
    },
    backups: {
      dir: "backups",
      every_ms: DAY_MS,
      keep: 1,
      newest: made,
      verified_at: START,
      failure: null,
      stuck_since: null,
      sending: { sent: made, failure: null },
      drill: {
        every_ms: DAY_MS,
        last: { at: START, file: made.file, failure: null, is_skipped: false },
        passed_at: START,
      },
    },
  }),
  storage: { queue: { depth: 0, usage: 0, outage: null }, figures: () => figures },
};

/** Of a server that has everything but `--acme-domain`, and `signalbox_acme_failing`. */
async function everyMetric(): Promise<ReadonlyMap<string, string>> {
  const { certFile, keyFile } = writeCertificate(temporaryFolder(), await makeCertificate("a"));
  const tls = ["--tls-cert", certFile, "--tls-key", keyFile];
  const backups = ["--backup-dir", temporaryFolder(), "--backup-command", "true {}"];
  const server = await startServe([...tls, ...backups, "--backup-drill", "1w"]);
  const { key } = await mintByCommand(server.dataDir);
  const sent = await callUrl(server.url, "/v1/signals", posting(key, signal, trusting));
  expect(sent.status).toBe(201);
  const unknown = posting(`sbk_${"0".repeat(64)}`, signal, trusting);
  expect((await callUrl(server.url, "/v1/signals", unknown)).status).toBe(401);
  await Promise.all([server.logged("backup sent"), server.logged("backup drill passed")]);
  const { samples, types } = await scrape(server.dataDir);
  const names = new Set([...samples.keys()].flatMap(metricsIn));
  expect(namesIn(await new Metrics(silent).text(withServer))).toContain("signalbox_acme_failing");
  names.add("signalbox_acme_failing");
  return new Map([...types].filter(([name]) => names.has(name)));
}

describe("every metric", () => {
  test("of the rules, the dashboard and docs/metrics.md is in /metrics, which has no other", async () => {
    const metrics = await everyMetric();
    const page = await Bun.file("docs/metrics.md").text();
    const rows = [...page.matchAll(/^\| `([a-z_]+)` \| (\w+) \| /gm)];
    const listed = rows.map(([, name = "", type = ""]) => `${name}: ${type}`);
    expect(listed.toSorted()).toEqual([...metrics].map((one) => one.join(": ")).toSorted());
    const { groups } = await readRules();
    const queries = groups.flatMap(({ rules }) => rules.map(({ expr }) => expr));
    const dashboard = await Bun.file("deploy/grafana/signalbox.json").text();
    const used = [...queries, dashboard, page].flatMap(metricsIn);
    expect(used.length).toBeGreaterThan(80);
    expect(used.filter((name) => !metrics.has(name))).toEqual([]);
  });
});

describe("every alert", () => {
  test("says what it is about, and has an entry in the runbook that its link names", async () => {
    const page = await Bun.file("docs/operations.md").text();
    const [, section = ""] = page.split("\n## Alerts\n");
    const [alerts = ""] = section.split(/^## /m);
    const entries = alerts.split(/^### /m).slice(1);
    const { groups } = await readRules();
    const rules = groups.flatMap((group) => group.rules);
    expect(entries.map((entry) => entry.split("\n", 1).join())).toEqual(
      rules.map(({ alert }) => alert),
    );
    for (const { alert, labels, annotations } of rules) {
      expect(["critical", "warning"], alert).toContain(labels["severity"] ?? "");
      expect(annotations, alert).toEqual({
        summary: expect.stringMatching(/\{\{ \$labels\.\w+ \}\}/),
        description: expect.stringMatching(/\.$/),
        // docs/operations.md has the heading, as tested above.
        runbook_url: `{{ $externalLabels.docs_url }}/operations.md#${alert.toLowerCase()}`,
      });
    }
    for (const entry of entries) {
      expect(entry).toMatch(/^\w+\n\n\S[^]*\n```sh\n[^]*\n```\n\n\S/);
    }
  });
});
