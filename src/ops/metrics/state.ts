/** Metrics of what the server can look up. They are read when somebody asks, and cost a signal nothing. */
import { Gauge, type Registry } from "./prom-client.ts";
import { statfs } from "node:fs/promises";
import type { Logger } from "pino";
import { AppError, messageOf } from "../../domain/errors.ts";
import type { FiguresQuery, ServerStorage, StorageFigures } from "../../domain/storage.ts";
import { countDescriptors, readDescriptorsMax } from "../../net/sockets.ts";
import { type HealthSources, readiness } from "../health.ts";
import type { ServerStatus } from "../server.ts";
import { publishCount } from "./counts.ts";
import type { RequestMetrics } from "./requests.ts";

/** Those with the latest signal have series of their own. */
export const DESKS_MAX = 100;
export const KEYS_MAX = 200;

export interface StateSources {
  readonly health: HealthSources;
  readonly status: () => ServerStatus;
  readonly storage: Pick<ServerStorage, "queueDepth" | "figures">;
  readonly feed: { readonly waiting: number };
}

/** Gauges without labels, and what they say. */
const described = {
  signalbox_queue_signals: "Signals that wait for the disk.",
  signalbox_feed_requests_waiting: "Requests for the feed that wait for signals.",
  signalbox_database_bytes: "Size of the database.",
  signalbox_log_bytes: "Size of the database's write-ahead log.",
  signalbox_disk_free_bytes: "Space that the server can use on the disk of the data folder.",
  signalbox_disk_size_bytes: "Size of the disk of the data folder.",
  signalbox_desks_left_out: `Desks without series of their own: the ${DESKS_MAX} with the latest signal have them.`,
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
  process_start_time_seconds: "When the server started.",
  process_resident_memory_bytes: "Memory that the server uses.",
  process_open_fds: "Open files and connections.",
  process_max_fds: "How many files and connections the server may open.",
} as const;

type Values = Record<keyof typeof described, number | null>;

export class StateMetrics {
  readonly #registry: Registry;
  readonly #requests: RequestMetrics;
  readonly #log: Logger;
  readonly #plain: ReadonlyMap<string, Gauge>;
  readonly #ready;
  readonly #latestOfDesk;
  readonly #latestOfKey;
  readonly #build;
  /** What was logged last; null: the last read succeeded. */
  #defect: string | null = null;

  constructor(registry: Registry, requests: RequestMetrics, log: Logger) {
    this.#registry = registry;
    this.#requests = requests;
    this.#log = log;
    this.#plain = new Map(
      Object.entries(described).map(([name, help]) => [name, this.#gauge(name, help, [])]),
    );
    this.#ready = this.#gauge("signalbox_ready", "1 if the check of /readyz passes.", ["check"]);
    this.#latestOfDesk = this.#gauge(
      "signalbox_desk_latest_signal_timestamp_seconds",
      "When the desk's latest signal was stored.",
      ["desk"],
    );
    this.#latestOfKey = this.#gauge(
      "signalbox_key_latest_signal_timestamp_seconds",
      "When the key's latest signal was accepted, stored or duplicate.",
      ["desk", "key_id"],
    );
    this.#build = this.#gauge("signalbox_build_info", "Always 1.", ["version", "bun"]);
    const cpu = {
      name: "process_cpu_seconds_total",
      help: "Processor time that the server has used.",
    };
    publishCount(registry, cpu, () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    });
  }

  /** Values that do not exist, or cannot be read now, are left out. */
  async read(sources: StateSources): Promise<void> {
    const { health, status, storage } = sources;
    const query = { now: health.now(), desksMax: DESKS_MAX, keysMax: KEYS_MAX };
    const [checks, disk, figures] = await Promise.all([
      readiness(health),
      statfs(health.dataDir).catch(() => null),
      this.#readFigures(storage, query),
    ]);
    const values: Values = {
      ...valuesOfStorage(figures),
      ...valuesOfCertificate(health.certificate(), status()),
      ...valuesOfBackups(status()),
      ...valuesOfProcess(status()),
      signalbox_queue_signals: storage.queueDepth,
      signalbox_feed_requests_waiting: sources.feed.waiting,
      signalbox_disk_free_bytes: disk && disk.bavail * disk.bsize,
      signalbox_disk_size_bytes: disk && disk.blocks * disk.bsize,
    };
    for (const [name, value] of Object.entries(values)) {
      const gauge = this.#plain.get(name);
      if (value === null) gauge?.remove();
      else gauge?.set(value);
    }
    for (const [check, { ok }] of Object.entries(checks)) this.#ready.set({ check }, Number(ok));
    this.#build.set({ version: status().version, bun: Bun.version }, 1);
    this.#readLatest(figures);
  }

  /** Null if they cannot be read now. A defect is logged once, until its message changes. */
  async #readFigures(
    storage: StateSources["storage"],
    query: FiguresQuery,
  ): Promise<StorageFigures | null> {
    try {
      const figures = await storage.figures(query);
      this.#defect = null;
      return figures;
    } catch (err) {
      const isExpected = err instanceof AppError && err.code === "unavailable";
      if (!isExpected && messageOf(err) !== this.#defect) {
        this.#defect = messageOf(err);
        this.#log.error({ err }, "the database's metrics cannot be read");
      }
      return null;
    }
  }

  #readLatest(figures: StorageFigures | null): void {
    const { desks, keys } = figures ?? { desks: [], keys: [] };
    this.#requests.show(desks);
    this.#latestOfDesk.reset();
    this.#latestOfKey.reset();
    for (const { name, latestSignalAt } of desks) {
      if (latestSignalAt !== null) this.#latestOfDesk.set({ desk: name }, latestSignalAt / 1_000);
    }
    for (const { id, desk, lastUsedAt } of keys) {
      const at = this.#requests.lastUseOf(id) ?? lastUsedAt;
      if (at !== null) this.#latestOfKey.set({ desk, key_id: id }, at / 1_000);
    }
  }

  #gauge<Label extends string>(name: string, help: string, labelNames: Label[]) {
    return new Gauge({ name, help, labelNames, registers: [this.#registry] });
  }
}

function valuesOfStorage(figures: StorageFigures | null) {
  return {
    signalbox_database_bytes: figures && figures.databaseBytes,
    signalbox_log_bytes: figures && figures.logBytes,
    signalbox_desks_left_out: figures && figures.desksTotal - figures.desks.length,
    signalbox_keys_left_out: figures && figures.keysTotal - figures.keys.length,
    signalbox_keys_expiring_soon: figures && figures.keysExpiring,
  };
}

function valuesOfCertificate(
  certificate: ReturnType<HealthSources["certificate"]>,
  { acme }: ServerStatus,
) {
  return {
    signalbox_certificate_start_timestamp_seconds: certificate && certificate.startsAt / 1_000,
    signalbox_certificate_expiry_timestamp_seconds: certificate && certificate.expiresAt / 1_000,
    signalbox_acme_failing: acme && Number(acme.failure !== null),
  };
}

function valuesOfBackups({ backups }: ServerStatus) {
  const { newest = null, verified_at: verifiedAt = null, sending = null } = backups ?? {};
  return {
    signalbox_backup_interval_seconds: backups && backups.every_ms / 1_000,
    signalbox_backup_latest_timestamp_seconds: newest && newest.at / 1_000,
    signalbox_backup_verified_timestamp_seconds: verifiedAt && verifiedAt / 1_000,
    signalbox_backup_failing: backups && Number(backups.failure !== null),
    signalbox_backup_sent_timestamp_seconds: sending?.sent ? sending.sent.at / 1_000 : null,
    signalbox_backup_command_failing: sending && Number(sending.failure !== null),
  };
}

function valuesOfProcess({ started_at: startedAt }: ServerStatus) {
  const openFds = countDescriptors();
  return {
    process_start_time_seconds: startedAt / 1_000,
    process_resident_memory_bytes: process.memoryUsage.rss(),
    process_open_fds: Number.isFinite(openFds) ? openFds : null,
    process_max_fds: readDescriptorsMax(),
  };
}
