/** Damaged signals that somebody asked for since the start: each is logged once, and `status` names them. */
import type { Logger } from "pino";

const NAMED_MAX = 100;

export class DamagedSignals {
  readonly #log: Logger;
  readonly #ids = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  found(id: string): void {
    if (this.#ids.has(id) || this.#ids.size === NAMED_MAX) return;
    this.#ids.add(id);
    this.#log.error(
      { signal_id: id },
      "a stored signal is damaged, and is not handed out: restore a backup",
    );
  }

  list(): readonly string[] {
    return [...this.#ids];
  }
}
