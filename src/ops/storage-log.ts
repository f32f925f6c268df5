/** Tells the operator that signals are not being stored, why, and what to do about it. */
import { statfsSync } from "node:fs";
import type { Logger } from "pino";
import type { StorageProblem } from "../domain/storage.ts";

/** Under load a problem comes with every batch, hundreds of times a second, and its disk may be the log's. */
const REPEAT_INTERVAL_MS = 5_000;

/** One line at once, then one each few seconds with what has come together, and one when it is over. */
export class StorageLog {
  readonly #dataDir: string;
  readonly #log: Logger;
  #saidAt = Number.NEGATIVE_INFINITY;
  #signals = 0;

  constructor(dataDir: string, log: Logger) {
    this.#dataDir = dataDir;
    this.#log = log;
  }

  problem({ kind, obstacle, reason, signals }: StorageProblem): void {
    this.#signals += signals;
    const now = performance.now();
    if (now - this.#saidAt < REPEAT_INTERVAL_MS) return;
    this.#saidAt = now;
    const line = { kind, reason, signals: this.#signals, free_bytes: this.#freeBytes() };
    this.#signals = 0;
    this.#log.error(line, `signals were not stored: ${advice[obstacle ?? "none"]}`);
  }

  recovered(): void {
    this.#saidAt = Number.NEGATIVE_INFINITY;
    this.#log.info({ free_bytes: this.#freeBytes() }, "signals are stored again");
  }

  /** What this user may still write; null where the folder itself cannot be asked. */
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
  none: "please report this with the reason",
} as const;
