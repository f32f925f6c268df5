/** Makes backups at an interval, and keeps the latest ones. */
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { messageOf } from "../domain/errors.ts";

export interface BackupPlan {
  readonly dir: string;
  readonly everyMs: number;
  /** How many backups are kept. */
  readonly keep: number;
}

/** Makes one backup; its result goes to the log. */
export type MakeBackup = (file: string, signal: AbortSignal) => Promise<object>;

/** What was last done. Times are epoch milliseconds. */
export interface BackupStatus {
  readonly dir: string;
  readonly every_ms: number;
  readonly keep: number;
  /** The newest backup in the folder; null: there is none. */
  readonly newest: { readonly file: string; readonly at: number } | null;
  /** Of the last attempt; null if it succeeded, or none has ended yet. */
  readonly failure: { readonly at: number; readonly reason: string } | null;
}

/** A failed backup is retried after this, or sooner if backups are more frequent. */
const RETRY_MS = 60_000;
/** The longest wait of a timer (2^31 - 1 ms). */
const TIMER_MS_MAX = 2_147_483_647;
const NAME = /^signalbox-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db$/;

export class BackupJob {
  readonly #plan: BackupPlan;
  readonly #make: MakeBackup;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;
  #failure: BackupStatus["failure"] = null;

  /** Starts at once if the newest backup is older than the interval. */
  constructor(plan: BackupPlan, make: MakeBackup, log: Logger) {
    this.#plan = plan;
    this.#make = make;
    this.#log = log;
    this.#ended = this.#run();
  }

  get status(): BackupStatus {
    const { dir, everyMs, keep } = this.#plan;
    const name = listBackups(dir).at(-1);
    const newest = name === undefined ? null : { file: join(dir, name), at: timeOf(name) };
    return { dir, every_ms: everyMs, keep, newest, failure: this.#failure };
  }

  /** Aborts a running backup. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { everyMs } = this.#plan;
    await this.#sleep(this.#untilDue());
    while (!this.#stopping.signal.aborted) {
      const isMade = await this.#backUp();
      await this.#sleep(isMade ? everyMs : Math.min(everyMs, RETRY_MS));
    }
  }

  /** At most the interval, even if the clock was set back since the newest backup. */
  #untilDue(): number {
    const { dir, everyMs } = this.#plan;
    const newest = listBackups(dir).at(-1);
    if (newest === undefined) return 0;
    const age = Date.now() - timeOf(newest);
    return Math.min(everyMs, Math.max(0, everyMs - age));
  }

  async #backUp(): Promise<boolean> {
    const { dir } = this.#plan;
    // Names sort by time.
    const file = join(dir, `signalbox-${timeStamp(Date.now())}.db`);
    const startedAt = performance.now();
    try {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      const backup = await this.#make(file, this.#stopping.signal);
      const duration_ms = Math.round(performance.now() - startedAt);
      this.#failure = null;
      this.#log.info({ ...backup, duration_ms }, "backup made");
    } catch (error) {
      if (!this.#stopping.signal.aborted) {
        this.#failure = { at: Date.now(), reason: messageOf(error) };
        this.#log.error({ file, reason: messageOf(error) }, "backup failed, it will be retried");
      }
      return false;
    }
    this.#prune(file);
    return true;
  }

  /** Never removes the one just made, even if the clock was set back. */
  #prune(made: string): void {
    const { dir, keep } = this.#plan;
    const others = listBackups(dir)
      .map((name) => join(dir, name))
      .filter((file) => file !== made);
    for (const file of others.slice(0, Math.max(0, others.length - (keep - 1)))) {
      try {
        rmSync(file, { force: true });
      } catch (error) {
        this.#log.warn({ file, reason: messageOf(error) }, "an old backup cannot be deleted");
      }
    }
  }

  async #sleep(milliseconds: number): Promise<void> {
    const { signal } = this.#stopping;
    for (let left = milliseconds; left > 0 && !signal.aborted; left -= TIMER_MS_MAX) {
      // Rejects if the signal is aborted.
      await delay(Math.min(left, TIMER_MS_MAX), null, { signal }).catch(() => {});
    }
  }
}

/** UTC to the second, for the name of a file. */
export function timeStamp(now: number): string {
  return new Date(now).toISOString().replace(/[-:]|\.\d+/g, "");
}

/** Of a backup's name. */
function timeOf(name: string): number {
  return Date.parse(name.replace(NAME, "$1-$2-$3T$4:$5:$6Z"));
}

/** Names of backups, oldest first; none if the folder does not exist yet. */
function listBackups(dir: string): string[] {
  try {
    return readdirSync(dir)
      .filter((name) => NAME.test(name))
      .toSorted();
  } catch {
    return [];
  }
}
