/** Backups as a job: one after every span of time, the newest ones kept. */
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import { messageOf } from "../domain/errors.ts";

export interface BackupPlan {
  readonly dir: string;
  readonly everyMs: number;
  /** How many backups are kept, the newest ones. */
  readonly keep: number;
}

/** Makes one backup; what it resolves with goes to the log. */
export type MakeBackup = (file: string, signal: AbortSignal) => Promise<object>;

/** A failed backup is tried again after this, or sooner where backups are made more often. */
const RETRY_MS = 60_000;
/** The longest span of a timer (2^31 - 1 ms); a longer wait is made of several. */
const TIMER_MS_MAX = 2_147_483_647;
const NAME = /^signalbox-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db$/;

export class BackupJob {
  readonly #plan: BackupPlan;
  readonly #make: MakeBackup;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;

  /** Begins at once where the folder has no backup that is young enough. */
  constructor(plan: BackupPlan, make: MakeBackup, log: Logger) {
    this.#plan = plan;
    this.#make = make;
    this.#log = log;
    this.#ended = this.#run();
  }

  /** A backup under way is given up. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    await this.#sleep(this.#untilDue());
    while (!this.#stopping.signal.aborted) {
      const { everyMs } = this.#plan;
      const isMade = await this.#backUp();
      await this.#sleep(isMade ? everyMs : Math.min(everyMs, RETRY_MS));
    }
  }

  /** Never longer than the span, even where the clock has stepped back since the newest one. */
  #untilDue(): number {
    const { dir, everyMs } = this.#plan;
    const newest = listBackups(dir).at(-1);
    if (newest === undefined) return 0;
    const age = Date.now() - Date.parse(newest.replace(NAME, "$1-$2-$3T$4:$5:$6Z"));
    return Math.min(everyMs, Math.max(0, everyMs - age));
  }

  async #backUp(): Promise<boolean> {
    const { dir } = this.#plan;
    const file = join(dir, backupName(Date.now()));
    const startedAt = performance.now();
    try {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      const backup = await this.#make(file, this.#stopping.signal);
      const duration_ms = Math.round(performance.now() - startedAt);
      this.#log.info({ ...backup, duration_ms }, "backup made");
      this.#prune(file);
      return true;
    } catch (error) {
      if (!this.#stopping.signal.aborted) {
        this.#log.error(
          { file, reason: messageOf(error) },
          "backup failed, it will be tried again",
        );
      }
      return false;
    }
  }

  /** Never the one just made, whatever the clock says. */
  #prune(made: string): void {
    const { dir, keep } = this.#plan;
    const others = listBackups(dir).filter((name) => join(dir, name) !== made);
    for (const name of others.slice(0, Math.max(0, others.length - (keep - 1)))) {
      rmSync(join(dir, name), { force: true });
    }
  }

  async #sleep(milliseconds: number): Promise<void> {
    const { signal } = this.#stopping;
    for (let left = milliseconds; left > 0 && !signal.aborted; left -= TIMER_MS_MAX) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(left, TIMER_MS_MAX));
        signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
      });
    }
  }
}

/** `signalbox-20261121T115119Z.db`: sorts by time. */
function backupName(now: number): string {
  return `signalbox-${timeStamp(now)}.db`;
}

/** UTC, to the second, as it may stand in a file's name. */
export function timeStamp(now: number): string {
  return new Date(now).toISOString().replace(/[-:]|\.\d+/g, "");
}

/** Names of backups, oldest first; none where the folder is not there yet. */
function listBackups(dir: string): string[] {
  try {
    return readdirSync(dir)
      .filter((name) => NAME.test(name))
      .toSorted();
  } catch {
    return [];
  }
}
