/**
 * Makes backups at an interval, sends each away, and deletes old ones. Nothing here blocks the thread, which takes
 * signals: the backups may be on a network disk that hangs.
 */
import {
  backupOf,
  createFolder,
  listBackups,
  type MadeBackup,
  newestFirst,
  timeStamp,
} from "./folder.ts";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { messageOf } from "../lib/errors.ts";
import { CommandTimeout, runBackupCommand } from "./command.ts";
import { DrillJob, type DrillStatus, type RunDrill } from "./drill.ts";
import { surplusOf } from "./keep.ts";
import { type BackupPlan, type BackupStatus, initialStatus } from "./status.ts";

/** In bytes. */
export interface Room {
  readonly free: number;
  readonly needed: number;
}

/**
 * Makes one backup, and verifies it; its result goes to the log. Fails if the
 * `earlier` ones in the folder, newest first, are of another database: this one's would replace them one by one.
 */
export type MakeBackup = (
  file: string,
  making: { readonly signal: AbortSignal; readonly earlier: readonly string[] },
) => Promise<object>;

/** What a job does with the database. Nothing of it blocks this thread. */
export interface BackupWork {
  readonly make: MakeBackup;
  readonly drill: RunDrill;
  /** For the next backup in this folder. */
  readonly roomIn: (dir: string) => Promise<Room>;
  /** Returns the first of the `files` that is not known to be of another database, or null. */
  readonly findOwn: (files: readonly string[], signal: AbortSignal) => Promise<string | null>;
}

/** A failed backup is retried after this, or sooner if backups are more frequent. */
const RETRY_MS = 60_000;
/** The shortest interval that the settings allow. */
const STUCK_MS_MIN = 1_000;
/** A disk that hangs does not keep the server from stopping. */
const STOP_MS_MAX = 5_000;

export class BackupJob {
  readonly #plan: BackupPlan;
  readonly #work: BackupWork;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;
  readonly #drills: DrillJob | null;
  #isTight = false;
  status: BackupStatus;

  /** Starts at once if the newest backup is older than the interval. */
  constructor(plan: BackupPlan, work: BackupWork, log: Logger) {
    this.#plan = plan;
    this.#work = work;
    this.#log = log;
    this.status = initialStatus(plan);
    const { dir, drillMs } = plan;
    const stopping = this.#stopping.signal;
    const onStatus = (drill: DrillStatus): void => this.#note({ drill });
    this.#drills =
      drillMs === null
        ? null
        : new DrillJob({ dir, everyMs: drillMs, run: work.drill, log, stopping, onStatus });
    this.#ended = this.#run();
  }

  /** Aborts a running backup, drill or command. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const isEnded = await Promise.race([
      Promise.all([this.#ended, this.#drills?.ended()]).then(() => true),
      delay(STOP_MS_MAX, false, { ref: false }),
    ]);
    if (!isEnded)
      this.#log.warn({ dir: this.#plan.dir }, "the disk of the backups does not answer");
  }

  async #run(): Promise<void> {
    const { everyMs } = this.#plan;
    const waitMs = await this.#watched(() => this.#untilDue());
    let dueAt = performance.now() + waitMs;
    // Whether the last server has sent it is not known.
    const { newest } = this.status;
    if (waitMs > 0) this.#drills?.consider(newest);
    if (waitMs > 0 && newest !== null) await this.#send(newest, dueAt);
    await this.#sleep(dueAt - performance.now());
    while (!this.#stopping.signal.aborted) {
      const made = await this.#watched(() => this.#backUp());
      this.#drills?.consider(this.status.newest);
      dueAt = performance.now() + (made === null ? Math.min(everyMs, RETRY_MS) : everyMs);
      if (made !== null) await this.#send(made, dueAt);
      await this.#sleep(dueAt - performance.now());
    }
  }

  /** Reports work that may never be done: a network disk can hang for ever, without an error. */
  async #watched<T>(work: () => Promise<T>): Promise<T> {
    const { dir, everyMs } = this.#plan;
    const since = Date.now();
    const report = (): void => {
      this.#note({ stuck_since: since });
      this.#log.error(
        { dir, since: new Date(since).toISOString() },
        "a backup is not done after a whole interval: the disk of the backups does not answer, or is too slow",
      );
    };
    const timer = setTimeout(report, Math.max(everyMs, STUCK_MS_MIN)).unref();
    try {
      return await work();
    } finally {
      clearTimeout(timer);
      this.#note({ stuck_since: null });
    }
  }

  /** Retries until the next backup is due; that one is sent instead. */
  async #send(made: MadeBackup, dueAt: number): Promise<void> {
    const { everyMs } = this.#plan;
    for (let pauseMs = Math.min(RETRY_MS, everyMs / 4); ; pauseMs *= 2) {
      if (await this.#sendOnce(made)) return;
      if (this.#stopping.signal.aborted || performance.now() + pauseMs >= dueAt) return;
      await this.#sleep(pauseMs);
    }
  }

  async #sendOnce(made: MadeBackup): Promise<boolean> {
    const { command, everyMs } = this.#plan;
    const { signal } = this.#stopping;
    if (command === null || signal.aborted) return true;
    const { file } = made;
    const startedAt = performance.now();
    const timeoutMs = Math.ceil(everyMs / 2);
    try {
      await runBackupCommand(command, file, { timeoutMs, signal });
      this.#note({ sending: { sent: made, failure: null } });
      const duration_ms = Math.round(performance.now() - startedAt);
      this.#log.info({ file, duration_ms }, "backup sent");
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      const reason = messageOf(error);
      const sent = this.status.sending?.sent ?? null;
      const timed_out = error instanceof CommandTimeout;
      this.#note({ sending: { sent, failure: { at: Date.now(), reason, timed_out } } });
      this.#log.error({ file, reason }, "the backup command failed, it will be retried");
      return false;
    }
  }

  /** At most the interval, even if the clock was set back since the newest backup. */
  async #untilDue(): Promise<number> {
    const { dir, everyMs } = this.#plan;
    const { future } = await listBackups(dir);
    if (future.length > 0) {
      const files = future.map((name) => join(dir, name));
      this.#log.warn({ files }, "backups dated in the future are neither counted nor deleted");
    }
    const files = await newestFirst(dir);
    // The next backup says why it failed.
    const { signal } = this.#stopping;
    const own =
      files.length === 0 ? null : await this.#work.findOwn(files, signal).catch(() => null);
    const newest = own === null ? null : backupOf(own);
    this.#note({ newest });
    await this.#drills?.open();
    await this.#checkRoom();
    // One of another database makes the next backup fail: report that now.
    if (newest === null || newest.file !== files[0]) return 0;
    return Math.min(everyMs, Math.max(0, everyMs - (Date.now() - newest.at)));
  }

  /** Reports once that the next backup may not fit, and once that it does. It is tried all the same. */
  async #checkRoom(): Promise<void> {
    const { dir } = this.#plan;
    // The backup says what is wrong with its disk.
    const room = await this.#work.roomIn(dir).catch(() => null);
    if (room === null || room.free < room.needed === this.#isTight) return;
    this.#isTight = !this.#isTight;
    const line = { dir, free_bytes: room.free, needed_bytes: room.needed };
    if (this.#isTight) this.#log.warn(line, "the next backup may not fit on its disk");
    else this.#log.info(line, "the next backup fits on its disk again");
  }

  /** Returns null if it failed. */
  async #backUp(): Promise<MadeBackup | null> {
    const { dir } = this.#plan;
    await this.#checkRoom();
    // Names sort by time.
    const file = join(dir, `signalbox-${timeStamp(Date.now())}.db`);
    const startedAt = performance.now();
    let made: MadeBackup;
    try {
      await createFolder(dir);
      const earlier = await newestFirst(dir);
      const backup = await this.#work.make(file, { signal: this.#stopping.signal, earlier });
      const duration_ms = Math.round(performance.now() - startedAt);
      made = backupOf(file);
      this.#note({ newest: made, verified_at: Date.now(), failure: null });
      this.#log.info({ ...backup, duration_ms }, "backup made");
    } catch (error) {
      if (!this.#stopping.signal.aborted) {
        this.#note({ failure: { at: Date.now(), reason: messageOf(error) } });
        this.#log.error({ file, reason: messageOf(error) }, "backup failed, it will be retried");
      }
      return null;
    }
    await this.#prune(made);
    await this.#checkRoom();
    return made;
  }

  #note(change: Partial<BackupStatus>): void {
    this.status = { ...this.status, ...change };
  }

  /** Never removes the one just made, even if the clock was set back. */
  async #prune(made: MadeBackup): Promise<void> {
    const { dir, keep } = this.#plan;
    const files = await newestFirst(dir);
    const others = files.filter((file) => file !== made.file).map(backupOf);
    for (const { file } of surplusOf([made, ...others], keep)) {
      try {
        await rm(file, { force: true });
      } catch (error) {
        this.#log.warn({ file, reason: messageOf(error) }, "an old backup cannot be deleted");
      }
    }
  }

  /** Ends when the job is stopped. */
  async #sleep(milliseconds: number): Promise<void> {
    await delay(Math.max(0, milliseconds), null, { signal: this.#stopping.signal }).catch(() => {});
  }
}
