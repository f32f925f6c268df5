/** Notices what other servers store, while readers wait. */
import type { Sql } from "../records/sql.ts";

/** A reader hears of a signal within 100 ms. */
const INTERVAL_MS = 50;
/** Beyond that, every desk may have signals. */
const SIGNALS_READ_MAX = 10_000;

export class Watch {
  readonly #sql: Sql;
  readonly #onStored: (deskIds: ReadonlySet<number>) => void;
  #readers = 0;
  #timer: Timer | undefined;
  /** What is stored up to here was told. */
  #seen = 0;

  constructor(sql: Sql, onStored: (deskIds: ReadonlySet<number>) => void) {
    this.#sql = sql;
    this.#onStored = onStored;
  }

  begin(): Disposable {
    this.#readers += 1;
    if (this.#readers === 1) this.#plan();
    return {
      [Symbol.dispose]: () => {
        this.#readers -= 1;
        if (this.#readers === 0) this.stop();
      },
    };
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #plan(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), INTERVAL_MS);
  }

  async #look(): Promise<void> {
    try {
      const desks = await this.#desksSince();
      if (desks.length > 0) this.#onStored(new Set(desks.map(({ id }) => id)));
    } catch {
      // Readers look by themselves each second, and are told then.
    }
    if (this.#readers > 0) this.#plan();
  }

  async #desksSince(): Promise<{ id: number }[]> {
    const before = this.#seen;
    const turn = await this.#sql.get<{ seq: number }>("SELECT seq FROM turn");
    if (turn === null || turn.seq === before) return [];
    this.#seen = turn.seq;
    return turn.seq - before > SIGNALS_READ_MAX
      ? this.#sql.all("SELECT id FROM desks")
      : this.#sql.all("SELECT DISTINCT desk_id AS id FROM signals WHERE seq > $1", before);
  }
}
