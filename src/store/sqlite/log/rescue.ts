/**
 * Ends a server whose log was removed: what is in that log is copied into the database first. Until that has succeeded,
 * the process has the only copy of signals that were acknowledged, so it answers 503 and tries again.
 */
import type { Database } from "bun:sqlite";
import type { StorageProblem } from "../../../domain/storage/append.ts";
import { describeFailure, isRefusedWrite, isTransient } from "../files/failures.ts";
import { hasMoved } from "../files/transaction.ts";
import { describeCutLog, hasLogMoved, isLogCut, setSecondLogAside } from "./removed-log.ts";

const RETRY_MS = 1_000;

type Obstacle = Pick<StorageProblem, "reason" | "obstacle">;

interface RescueEvents {
  readonly onFatal: (reason: string) => void;
  readonly onProblem: (problem: StorageProblem) => void;
}

export class Rescue {
  readonly #db: Database;
  readonly #events: RescueEvents;
  readonly #stopping = Promise.withResolvers<void>();
  #isStopping = false;
  #ended: Promise<void> | null = null;

  /** `db`: a connection of this thread that has the log open. */
  constructor(db: Database, events: RescueEvents) {
    this.#db = db;
    this.#events = events;
  }

  /** Calls `onFatal`; if the log was removed, after the copy. `endWriter` resolves when nothing more will be committed. */
  end(reason: string, endWriter: () => Promise<void>): void {
    if (hasLogMoved(this.#db)) this.#ended ??= this.#copy(reason, endWriter);
    else this.#events.onFatal(isLogCut(this.#db) ? describeCutLog(this.#db) : reason);
  }

  /** Resolves when nothing is left to do, after one last attempt. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#stopping.resolve();
    await this.#ended;
  }

  async #copy(reason: string, endWriter: () => Promise<void>): Promise<void> {
    await endWriter();
    const aside: string[] = [];
    for (;;) {
      const isLast = this.#isStopping;
      const obstacle = tryToCopy(this.#db, aside);
      if (obstacle === null || isLast) {
        const end = describeEnd(obstacle, hasMoved(this.#db));
        this.#events.onFatal(`${reason}; ${end}${describeSecond(aside)}`);
        return;
      }
      this.#events.onProblem({
        kind: "unavailable",
        ...obstacle,
        reason: `the removed log is not copied into the database yet: ${obstacle.reason}; do not stop the server: it has the only copy`,
        error: obstacle.reason,
        signals: 0,
      });
      await Promise.race([Bun.sleep(RETRY_MS), this.#stopping.promise]);
    }
  }
}

/** Returns why a part of the log is not in the database, or null. `aside` gets the name of a second log. */
function tryToCopy(db: Database, aside: string[]): Obstacle | null {
  try {
    const second = setSecondLogAside(db);
    if (second !== null) aside.push(second);
    // Waits for a change that began before the removal; later ones are refused (`store/sqlite/sql.ts`).
    db.run("BEGIN IMMEDIATE");
    db.run("ROLLBACK");
    const sql = "PRAGMA wal_checkpoint(PASSIVE)";
    const state = db.query<{ busy: number; log: number; checkpointed: number }, []>(sql).get();
    if (state?.busy === 0 && state.log === state.checkpointed) return null;
    return { reason: "another process is reading the database", obstacle: "lock" };
  } catch (error) {
    const obstacle = isRefusedWrite(error) ? "disk" : isTransient(error) ? "lock" : null;
    return { reason: describeFailure(error), obstacle };
  }
}

function describeEnd(obstacle: Obstacle | null, isFileMoved: boolean): string {
  if (obstacle !== null) {
    return `the log could not be copied into the database (${obstacle.reason}), so the newest signals are lost, and the database may be damaged`;
  }
  return isFileMoved
    ? "the log was copied into that file, so nothing is lost if it was moved, and everything if it was deleted"
    : "it was copied into the database, so no acknowledged signal is lost";
}

function describeSecond(aside: readonly string[]): string {
  if (aside.length === 0) return "";
  return `. Another process had begun a second log, which is kept as ${aside.join(", ")}: repeat what it changed`;
}
