/** All metrics, and the text format of Prometheus, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/ */

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Those with the latest signal have series of their own. */
export const DESKS_MAX = 100;
export const KEYS_MAX = 200;

/** The label of all fields that the interface does not have. */
export const UNKNOWN = "unknown";

/** What each metric says. docs/metrics.md has more. */
const help = {
  counter: {
    signalbox_requests_total: "Answers to signals, and refusals, by HTTP status.",
    signalbox_rejects_total: "Refusals, by error code.",
    signalbox_invalid_fields_total: `Invalid fields in requests that got 422; ${UNKNOWN} stands for all fields that the interface does not have.`,
    signalbox_duplicates_total: "Signals stored before.",
    signalbox_differing_duplicates_total: "Duplicates that differ from the stored signal.",
    signalbox_unknown_key_requests_total:
      "Requests that got 401 and have no key, or one that no desk has.",
    signalbox_unknown_key_source_requests_total:
      "The same by address and by the hash of the key's start, of the 100 pairs with the most.",
    signalbox_desk_requests_total:
      "Requests with a key of the desk: stored, duplicate, rejected (4xx) or failed (5xx).",
    signalbox_feed_requests_total: "Answers of the feed, by HTTP status.",
    process_cpu_seconds_total: "Processor time that the server has used.",
  },
  histogram: {
    signalbox_request_duration_seconds: "From a request's headers to the commit of its signal.",
    signalbox_clock_skew_seconds: "received_at minus signal_time, of signals that have one.",
    signalbox_batch_signals: "Signals per transaction.",
    signalbox_transaction_duration_seconds: "Duration of a transaction, its commit included.",
    signalbox_commit_duration_seconds: "Duration of a commit: the write to the log and its fsync.",
  },
  gauge: {
    signalbox_queue_signals: "Signals that wait for the disk.",
    signalbox_queue_usage_ratio:
      "Share of the queue that is taken, by number or by size; at 1, signals are refused.",
    signalbox_feed_requests_waiting: "Requests for the feed that wait for signals.",
    signalbox_database_bytes: "Size of the database.",
    signalbox_log_bytes: "Size of the database's write-ahead log.",
    signalbox_disk_free_bytes: "Space that the server can use on the disk of the data folder.",
    signalbox_disk_size_bytes: "Size of the disk of the data folder.",
    signalbox_desk_created_timestamp_seconds: "When the desk was created.",
    signalbox_desk_latest_signal_timestamp_seconds: "When the desk's latest signal was stored.",
    signalbox_desks_left_out: `Desks without series of their own: the ${DESKS_MAX} with the latest signal have them.`,
    signalbox_key_latest_signal_timestamp_seconds:
      "When the key's latest signal was accepted, stored or duplicate.",
    signalbox_keys_left_out: `Active keys without a series of their own: the ${KEYS_MAX} used last have one.`,
    signalbox_keys_expiring_soon: "Active keys without a successor that expire within 7 days.",
    signalbox_certificate_start_timestamp_seconds: "When the certificate in use became valid.",
    signalbox_certificate_expiry_timestamp_seconds: "When the certificate in use expires.",
    signalbox_acme_failing:
      "1 if the last order of a certificate failed, or the next one cannot be answered.",
    signalbox_backup_interval_seconds: "--backup-every; absent without --backup-dir.",
    signalbox_backup_latest_timestamp_seconds:
      "When the latest backup was made; it was verified before it got its name.",
    signalbox_backup_verified_timestamp_seconds:
      "When this server last verified a backup that it had made.",
    signalbox_backup_failing: "1 if the last attempt to make a backup failed.",
    signalbox_backup_sent_timestamp_seconds:
      "When the backup was made that --backup-command sent away last.",
    signalbox_backup_command_failing: "1 if the last attempt of --backup-command failed.",
    signalbox_backup_drill_interval_seconds: "--backup-drill; absent without it.",
    signalbox_backup_drill_passed_timestamp_seconds:
      "When a drill last restored a backup, verified it, and found it the same as the database.",
    signalbox_backup_drill_failing: "1 if the last drill failed, or was skipped for want of space.",
    signalbox_ready: "1 if the check of /readyz passes.",
    signalbox_build_info: "Always 1.",
    signalbox_time_seconds: "The server's clock.",
    process_start_time_seconds: "When the server started.",
    process_resident_memory_bytes: "Memory that the server uses.",
    process_open_fds: "Open files and connections.",
    process_max_fds: "How many files and connections the server may open.",
  },
} as const;

type Help = typeof help;
export type Histogram = keyof Help["histogram"];
export type Gauge = keyof Help["gauge"];
export type Metric = keyof Help["counter"] | Histogram | Gauge;

const described = Object.entries(help).flatMap(([type, metrics]) =>
  Object.entries(metrics).map(([name, text]) => [name, { type, text }] as const),
);
const byName = new Map<string, { readonly type: string; readonly text: string }>(described);

type Labels = Readonly<Record<string, string>>;

/** `suffix`: of the metric's name, for a part of a histogram. */
export type Sample = readonly [labels: Labels, value: number, suffix?: string];

/** A metric without samples keeps its first two lines, so that its name can be found. */
export function metricText(name: Metric, samples: Iterable<Sample> | number | null): string {
  const all =
    samples === null ? [] : typeof samples === "number" ? [[{}, samples] as const] : samples;
  const lines = Array.from(
    all,
    ([labels, value, suffix = ""]) => `${name}${suffix}${labelText(labels)} ${value}\n`,
  );
  const { type, text } = byName.get(name) ?? {};
  return `# HELP ${name} ${text}\n# TYPE ${name} ${type}\n${lines.join("")}\n`;
}

/** No value has a character to escape: names of desks have letters, digits, dots, dashes and underscores. */
function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}
