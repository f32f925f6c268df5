/** What the audit says of each key. */
import type { AuditRecord } from "../domain/audit.ts";
import type { ConsoleServices } from "./services.ts";

const PAGE = 100;

/** Key id → its entries, newest first. */
export type KeyRecords = ReadonlyMap<string, readonly AuditRecord[]>;

interface DeskHistory {
  /** The id of the newest entry that was read. */
  newest: number;
  readonly records: Map<string, AuditRecord[]>;
}

/**
 * Entries are never changed nor deleted, so each is read once, and what is asked later costs only what
 * was written since.
 */
export class KeyHistory {
  readonly #audit: ConsoleServices["audit"];
  readonly #desks = new Map<string, DeskHistory>();

  constructor(audit: ConsoleServices["audit"]) {
    this.#audit = audit;
  }

  ofDesk(desk: string): KeyRecords {
    const history = this.#desks.get(desk) ?? { newest: 0, records: new Map() };
    this.#desks.set(desk, history);
    const fresh = this.#readSince(desk, history.newest);
    history.newest = fresh[0]?.id ?? history.newest;
    for (const record of fresh.toReversed()) {
      if (record.key_id === null) continue;
      const records = history.records.get(record.key_id) ?? [];
      history.records.set(record.key_id, [record, ...records]);
    }
    return history.records;
  }

  /** Newest first. */
  #readSince(desk: string, newest: number): AuditRecord[] {
    const fresh: AuditRecord[] = [];
    for (;;) {
      const page = this.#audit.list({ desk, before: fresh.at(-1)?.id ?? null, limit: PAGE });
      const unread = page.filter(({ id }) => id > newest);
      fresh.push(...unread);
      if (unread.length < PAGE) return fresh;
    }
  }
}
