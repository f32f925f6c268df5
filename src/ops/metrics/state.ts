/** Metrics of what the server can look up. They are read when somebody asks, and cost a signal nothing. */
import { statfs } from "node:fs/promises";
import type { Logger } from "pino";
import { AppError } from "../../domain/errors.ts";
import { messageOf } from "../../lib/errors.ts";
import type { StorageFigures } from "../../domain/storage/figures.ts";
import type { ServerStorage } from "../../domain/storage/storage.ts";
import { countDescriptors, readDescriptorsMax } from "../../http/sockets.ts";
import type { Certificate } from "../../http/tls.ts";
import type { ServerStatus } from "../server.ts";
import { DESKS_MAX, type Gauge, KEYS_MAX, metricText, type Sample } from "./text.ts";

export interface StateSources {
  readonly dataDir: string;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** The checks of `/readyz`. */
  readonly ready: () => Promise<{
    readonly checks: Readonly<Record<string, { readonly ok: boolean }>>;
  }>;
  /** The one in use; null: there is none. */
  readonly certificate: () => Pick<Certificate, "startsAt" | "expiresAt"> | null;
  readonly status: () => ServerStatus;
  readonly storage: Pick<ServerStorage, "queue" | "figures">;
  readonly feed: { readonly waiting: number };
}

/** Reads what the database says. */
export class FigureReader {
  readonly #log: Logger;
  /** What was logged last; null: the last read succeeded. */
  #defect: string | null = null;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Null if it cannot be read now. A defect is logged once, until its message changes. */
  async read({ storage, now }: StateSources): Promise<StorageFigures | null> {
    try {
      const query = { now: now(), desksMax: DESKS_MAX, keysMax: KEYS_MAX };
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
}

/** Values that do not exist, or cannot be read now, are left out. `lastUseOf`: what this process knows of a key. */
export async function stateText(
  { dataDir, now, ready, certificate, status, storage, feed }: StateSources,
  figures: StorageFigures | null,
  lastUseOf: (keyId: string) => number | null,
): Promise<string> {
  const { version, node = "", database = null } = status();
  const [{ checks }, disk] = await Promise.all([ready(), statfs(dataDir).catch(() => null)]);
  const { desks, keys } = figures ?? { desks: [], keys: [] };
  const { user, system } = process.cpuUsage();
  const gauges: Record<Gauge, Sample[] | number | null> = {
    ...valuesOfStorage(figures),
    ...valuesOfCertificate(certificate(), status()),
    ...valuesOfBackups(status()),
    ...valuesOfProcess(status()),
    signalbox_queue_signals: storage.queue.depth,
    signalbox_queue_usage_ratio: storage.queue.usage,
    signalbox_time_seconds: now() / 1_000,
    signalbox_feed_requests_waiting: feed.waiting,
    signalbox_disk_free_bytes: disk && disk.bavail * disk.bsize,
    signalbox_disk_size_bytes: disk && disk.blocks * disk.bsize,
    signalbox_ready: Object.entries(checks).map(([check, { ok }]) => [{ check }, Number(ok)]),
    signalbox_desk_created_timestamp_seconds: desks.map(({ name: desk, createdAt }) => [
      { desk },
      createdAt / 1_000,
    ]),
    signalbox_desk_latest_signal_timestamp_seconds: desks.flatMap(
      ({ name: desk, latestSignalAt: at }): Sample[] =>
        at === null ? [] : [[{ desk }, at / 1_000]],
    ),
    signalbox_key_latest_signal_timestamp_seconds: keys.flatMap(
      ({ id, desk, lastUsedAt }): Sample[] => {
        const at = lastUseOf(id) ?? lastUsedAt;
        return at === null ? [] : [[{ desk, key_id: id }, at / 1_000]];
      },
    ),
    signalbox_build_info: [[{ version, bun: Bun.version, ...(database && { node, database }) }, 1]],
  };
  return [
    ...Object.entries(gauges).map(([name, samples]) => metricText(name as Gauge, samples)),
    metricText("process_cpu_seconds_total", (user + system) / 1e6),
    metricText(
      "signalbox_unknown_key_source_requests_total",
      (status().unknown_keys?.keys ?? []).map(({ address, hash, count }): Sample => [
        { address, key_hash: hash ?? "none" },
        count,
      ]),
    ),
  ].join("");
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
  certificate: ReturnType<StateSources["certificate"]>,
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
  const drill = backups?.drill ?? null;
  return {
    signalbox_backup_interval_seconds: backups && backups.every_ms / 1_000,
    signalbox_backup_latest_timestamp_seconds: newest && newest.at / 1_000,
    signalbox_backup_verified_timestamp_seconds: verifiedAt && verifiedAt / 1_000,
    signalbox_backup_failing: backups && Number(backups.failure !== null),
    signalbox_backup_sent_timestamp_seconds: sending?.sent ? sending.sent.at / 1_000 : null,
    signalbox_backup_command_failing: sending && Number(sending.failure !== null),
    signalbox_backup_drill_interval_seconds: drill && drill.every_ms / 1_000,
    signalbox_backup_drill_passed_timestamp_seconds: drill?.passed_at
      ? drill.passed_at / 1_000
      : null,
    signalbox_backup_drill_failing: drill && Number((drill.last?.failure ?? null) !== null),
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
