/**
 * Each alert of `deploy/prometheus/signalbox.rules.yml` with made-up series, in the windows that it has: `promtool test
 * rules`. `alerts.test.ts` causes each on a real server.
 */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { stringify } from "yaml";
import { readRules } from "../../ops/_metrics.ts";
import { temporaryFolder } from "../../kit/setup.ts";
import { must } from "../kit/debian.ts";

/** Metric → its values, one per minute, as promtool writes them (`start+step x count`). */
type Series = Readonly<Record<string, string>>;

interface Case {
  readonly fires: Series;
  /** Other conditions of the same alert. */
  readonly more?: Readonly<Record<string, Series>>;
  /** By the reason why the alert must be silent. */
  readonly silent: Readonly<Record<string, Series>>;
  /** When it fires; after an hour if not given. */
  readonly at?: string;
}

const HOUR = "x60";
const DAY = "x1500";

const requests = (status: number, values: string): Series => ({
  [`signalbox_requests_total{status="${status}"}`]: values,
});
const buckets = (name: string, values: Readonly<Record<string, string>>): Series =>
  Object.fromEntries([
    ...Object.entries(values).map(([le, count]) => [`${name}_bucket{le="${le}"}`, count]),
    [`${name}_count`, values["+Inf"] ?? ""],
  ]);
const commits = (fast: string, all: string): Series =>
  buckets("signalbox_commit_duration_seconds", {
    "0.1": fast,
    "0.25": fast,
    "0.5": all,
    "+Inf": all,
  });
const skews = (future: string, all: string): Series =>
  buckets("signalbox_clock_skew_seconds", { "-5": "0x60", "-1": future, "0": future, "+Inf": all });
const certificate = (startDay: number, endDay: number): Series => ({
  signalbox_certificate_start_timestamp_seconds: `${startDay * 86_400}${HOUR}`,
  signalbox_certificate_expiry_timestamp_seconds: `${endDay * 86_400}${HOUR}`,
});

const cases: Readonly<Record<string, Case>> = {
  SignalboxDown: { fires: { up: "0x60" }, silent: { "it answers": { up: "1x60" } } },
  SignalboxRestarting: {
    // `_`: a scrape that got no answer.
    fires: { process_start_time_seconds: "0x50 3000 _ 3120 _ 3240 3300 3360 3420 3480 3540" },
    silent: {
      "an upgrade": { process_start_time_seconds: "0x54 3300x6" },
      "a few restarts by hand": { process_start_time_seconds: "0x54 3300 3360x2 3540x3" },
    },
  },
  SignalboxRefusesSignals: {
    fires: { ...requests(201, "0+60x60"), ...requests(503, "0+2x60") },
    silent: {
      "one 503 of few requests": { ...requests(201, "0+1x60"), ...requests(503, "0x54 1x6") },
      "a moment of many": { ...requests(201, "0+600x60"), ...requests(503, "0x54 40x6") },
      "requests at fault": { ...requests(201, "0+1x60"), ...requests(422, "0+60x60") },
    },
  },
  SignalboxDiskLow: {
    fires: { signalbox_disk_free_bytes: "1000000000x60" },
    silent: { "2 GB are free": { signalbox_disk_free_bytes: "2000000000x60" } },
  },
  SignalboxDiskFilling: {
    fires: { signalbox_disk_free_bytes: "20000000000-20000000x400" },
    silent: {
      "it lasts for days": { signalbox_disk_free_bytes: "200000000000-20000000x400" },
      "a backup took some": { signalbox_disk_free_bytes: "20000000000x200 19000000000x200" },
    },
    at: "6h",
  },
  SignalboxQueueFilling: {
    fires: { signalbox_queue_usage_ratio: "0.6x60" },
    silent: {
      "a burst": { signalbox_queue_usage_ratio: "0x58 0.9 0 0" },
      "a few wait": { signalbox_queue_usage_ratio: "0.1x60" },
    },
  },
  SignalboxCommitsSlow: {
    fires: commits("0+10x60", "0+20x60"),
    silent: {
      "one of a hundred": commits("0+99x60", "0+100x60"),
      "one of two": commits("0x54 1x6", "0x54 2x6"),
    },
  },
  SignalboxDescriptorsLow: {
    fires: { process_open_fds: "900x60", process_max_fds: "1000x60" },
    silent: { "a third is in use": { process_open_fds: "330x60", process_max_fds: "1000x60" } },
  },
  SignalboxClockOff: {
    // promtool scrapes at its own time, which begins with 0.
    fires: { signalbox_time_seconds: "7+60x60" },
    silent: {
      "a little": { signalbox_time_seconds: "2+60x60" },
      "a few of many signals": { ...skews("0+1x60", "0+10x60"), signalbox_time_seconds: "0+60x60" },
      "one bot with one signal": skews("0x54 1x6", "0x54 1x6"),
    },
  },
  SignalboxDeskSilent: {
    fires: { ['signalbox_desk_latest_signal_timestamp_seconds{desk="alpha"}']: `-600${HOUR}` },
    silent: {
      "it sent half an hour ago": {
        ['signalbox_desk_latest_signal_timestamp_seconds{desk="alpha"}']: "0x30 1800x60",
      },
    },
  },
  SignalboxDeskNeverSent: {
    fires: { ['signalbox_desk_created_timestamp_seconds{desk="alpha"}']: `-85200${HOUR}` },
    silent: {
      "it is new": { ['signalbox_desk_created_timestamp_seconds{desk="alpha"}']: `-3600${HOUR}` },
      "it has sent": {
        ['signalbox_desk_created_timestamp_seconds{desk="alpha"}']: `-90000${HOUR}`,
        ['signalbox_desk_latest_signal_timestamp_seconds{desk="alpha"}']: `-90000${HOUR}`,
      },
    },
  },
  SignalboxRejectsRising: {
    fires: {
      ['signalbox_desk_requests_total{desk="alpha",outcome="stored"}']: "0+5x60",
      ['signalbox_desk_requests_total{desk="alpha",outcome="rejected"}']: "0+5x60",
    },
    silent: {
      "few of many": {
        ['signalbox_desk_requests_total{desk="alpha",outcome="stored"}']: "0+50x60",
        ['signalbox_desk_requests_total{desk="alpha",outcome="rejected"}']: "0+2x60",
      },
    },
  },
  SignalboxUnknownKeys: {
    fires: { signalbox_unknown_key_requests_total: "0+10x60" },
    silent: { "a mistake": { signalbox_unknown_key_requests_total: "0x54 5x6" } },
  },
  SignalboxNoBackup: {
    fires: { 'signalbox_build_info{version="1"}': "1x60" },
    silent: {
      "backups are made": {
        'signalbox_build_info{version="1"}': "1x60",
        signalbox_backup_interval_seconds: "3600x60",
      },
    },
  },
  SignalboxBackupLate: {
    fires: {
      signalbox_backup_interval_seconds: "1000x60",
      signalbox_backup_latest_timestamp_seconds: "1000x60",
    },
    silent: {
      "the first is not due": {
        signalbox_backup_interval_seconds: "3600x60",
        process_start_time_seconds: "0x60",
      },
    },
  },
  SignalboxBackupNotSent: {
    fires: { signalbox_backup_command_failing: "1x60" },
    silent: { "it is retried": { signalbox_backup_command_failing: "0x57 1x3" } },
  },
  SignalboxBackupNotDrilled: {
    fires: { signalbox_backup_drill_failing: "1x60" },
    silent: {
      "it is tried again with the next backup": { signalbox_backup_drill_failing: "0x58 1x2" },
      "it passed within two intervals": {
        signalbox_backup_drill_failing: "0x60",
        signalbox_backup_drill_interval_seconds: "2400x60",
        signalbox_backup_drill_passed_timestamp_seconds: "0x60",
      },
      "the first is not due": {
        signalbox_backup_drill_interval_seconds: "2400x60",
        process_start_time_seconds: "0x60",
      },
    },
    more: {
      "none has passed for two intervals": {
        signalbox_backup_drill_failing: "0x60",
        signalbox_backup_drill_interval_seconds: "1200x60",
        signalbox_backup_drill_passed_timestamp_seconds: "600x60",
      },
      "none has ever passed": {
        signalbox_backup_drill_interval_seconds: "1200x60",
        process_start_time_seconds: "600x60",
      },
    },
  },
  SignalboxCertificateExpiring: {
    fires: certificate(-80, 10),
    silent: { "it has a short life": certificate(-1, 5), "a month is left": certificate(-60, 30) },
  },
  SignalboxCertificateNotRenewed: {
    fires: { signalbox_acme_failing: `1${DAY}` },
    silent: { "it failed for an hour": { signalbox_acme_failing: "0x5 1x60" } },
    at: "24h10m",
  },
  SignalboxConsoleDown: {
    fires: { 'signalbox_ready{check="console"}': "0x60" },
    silent: {
      "it is restarted": { 'signalbox_ready{check="console"}': "1x57 0x2" },
      "another check fails": { 'signalbox_ready{check="writer"}': "0x60" },
    },
  },
  SignalboxKeysExpiring: {
    fires: { signalbox_keys_expiring_soon: "2x60" },
    silent: { "none expires": { signalbox_keys_expiring_soon: "0x60" } },
  },
};

test("each alert has series with which it fires, and others", async () => {
  const { groups } = await readRules();
  const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
  expect(Object.keys(cases)).toEqual(alerts);
});

/** Adds the labels that Prometheus gives to every series of a server. */
function labelled(name: string): string {
  const own = 'job="signalbox",instance="one"';
  return name.endsWith("}") ? name.replace(/}$/, `,${own}}`) : `${name}{${own}}`;
}

function runOf(alert: string, name: string, series: Series, isFiring: boolean) {
  return {
    name: `${alert}: ${name}`,
    interval: "1m",
    input_series: Object.entries(series).map(([metric, values]) => ({
      series: labelled(metric),
      values,
    })),
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`,
        eval_time: (isFiring && cases[alert]?.at) || "1h",
        exp_samples: [{ labels: "{}", value: isFiring ? 1 : 0 }],
      },
    ],
  };
}

test("the link of an alert begins with the address in prometheus.yml", async () => {
  const { groups } = await readRules();
  const [down] = groups.flatMap(({ rules }) => rules);
  const expected = {
    exp_labels: { severity: "critical", job: "signalbox", instance: "one" },
    exp_annotations: {
      summary: "one does not answer",
      description: down?.annotations["description"],
      runbook_url: "https://docs.test/operations.md#signalboxdown",
    },
  };
  const check = { alertname: "SignalboxDown", eval_time: "10m", exp_alerts: [expected] };
  const series = [{ series: labelled("up"), values: "0x60" }];
  await runPromtool([
    {
      interval: "1m",
      external_labels: { docs_url: "https://docs.test" },
      input_series: series,
      alert_rule_test: [check],
    },
  ]);
});

async function runPromtool(tests: readonly object[]): Promise<void> {
  const file = join(temporaryFolder(), "rules.test.yml");
  const rules = resolve("deploy/prometheus/signalbox.rules.yml");
  writeFileSync(file, stringify({ rule_files: [rules], evaluation_interval: "1m", tests }));
  expect(await must(["promtool", "test", "rules", file])).toContain("SUCCESS");
}

test("each alert fires with its series, and is silent with the others", async () => {
  const tests = Object.entries(cases).flatMap(([alert, { fires, more = {}, silent }]) => [
    runOf(alert, "fires", fires, true),
    ...Object.entries(more).map(([why, series]) => runOf(alert, why, series, true)),
    ...Object.entries(silent).map(([why, series]) => runOf(alert, why, series, false)),
  ]);
  await runPromtool(tests);
});
