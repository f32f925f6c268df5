/** Logs that signals are not stored, why, and what to do. */
import { statfsSync } from "node:fs";
import type { Logger } from "pino";
import type { StorageProblem } from "../domain/storage/append.ts";

/** Under load a problem comes with every batch, hundreds of times per second, and the log may be on the full disk. */
const REPEAT_INTERVAL_MS = 5_000;

/** Logs a problem at once, then every few seconds with the signals since, and its end. */
export class StorageLog {
  readonly #dataDir: string;
  readonly #log: Logger;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #signals = 0;

  constructor(dataDir: string, log: Logger) {
    this.#dataDir = dataDir;
    this.#log = log;
  }

  problem({ kind, obstacle, reason, error, signals }: StorageProblem): void {
    this.#signals += signals;
    const now = performance.now();
    if (now - this.#loggedAt < REPEAT_INTERVAL_MS) return;
    this.#loggedAt = now;
    const line = { kind, reason, error, signals: this.#signals, free_bytes: this.#freeBytes() };
    this.#signals = 0;
    this.#log.error(line, `signals were not stored: ${advice[obstacle ?? "none"]}`);
  }

  recovered(): void {
    this.#loggedAt = Number.NEGATIVE_INFINITY;
    this.#log.info({ free_bytes: this.#freeBytes() }, "signals are stored again");
  }

  /** Returns the space that this user can still use, or null if the folder cannot be read. */
  #freeBytes(): number | null {
    try {
      const { bavail, bsize } = statfsSync(this.#dataDir);
      return bavail * bsize;
    } catch {
      return null;
    }
  }
}

const advice = {
  disk: "free some space on the disk, or raise the quota; signals are then stored again without a restart",
  lock: "another process has locked the database: stop it",
  database:
    "see the reason, and the log of the database; signals are then stored again without a restart",
  none: "please report this with the reason",
} as const;
