/** What the answers promised, held against what is in the database. */
import { query } from "../_setup.ts";
import { columns, type Row } from "./oracle.ts";
import { markersIn } from "./secrets.ts";

/** A request that asked for a row to be stored, with whose it is. */
export interface Submitted {
  readonly name: string;
  readonly desk: string;
  readonly keyId: string;
  readonly row: Row;
}

interface Answered extends Submitted {
  readonly id: string;
  readonly receivedAt: number;
}

interface Repeated extends Submitted {
  readonly id: string;
  readonly differs: string;
}

interface StoredRow extends Row {
  readonly id: string;
  readonly desk: string;
  readonly key_id: string;
  readonly received_at: number;
}

export class Ledger {
  readonly #stored = new Map<string, Answered>();
  readonly #repeated: Repeated[] = [];
  readonly #unanswered: Submitted[] = [];

  get storedCount(): number {
    return this.#stored.size;
  }

  get repeatedCount(): number {
    return this.#repeated.length;
  }

  /** The markers that belong into the database: those of what was stored, or may be. */
  get storedMarkers(): ReadonlySet<string> {
    const rows = [...this.#stored.values(), ...this.#unanswered].map(({ row }) => row);
    return new Set(rows.flatMap((row) => markersIn(Object.values(row).join("\n"))));
  }

  /** Enters a 201 or 200. */
  answered(submitted: Submitted, reply: { status: number; headers: Headers; text: string }): void {
    const { id, received_at } = JSON.parse(reply.text) as { id: string; received_at: number };
    if (reply.status === 201) this.#stored.set(id, { ...submitted, id, receivedAt: received_at });
    else {
      const differs = reply.headers.get("x-duplicate-differs") ?? "";
      this.#repeated.push({ ...submitted, id, differs });
    }
  }

  /** Enters a request whose outcome nobody told: it may be stored, once, and as it was sent. */
  unanswered(submitted: Submitted): void {
    this.#unanswered.push(submitted);
  }

  /** Where promise and database are not the same. */
  problems(dataDir: string): string[] {
    const rows = query<StoredRow>(
      dataDir,
      `SELECT signals.id, desks.name AS desk, key_id, received_at, ${columns.join(", ")}
       FROM signals JOIN desks ON desks.id = desk_id ORDER BY seq`,
    );
    const byId = new Map(rows.map((row) => [row.id, row]));
    return [
      ...this.#wrongRows(rows),
      ...[...this.#stored.values()].flatMap(({ name, id }) =>
        byId.has(id) ? [] : [`${name}: ${id} was answered with 201 and is not there`],
      ),
      ...this.#repeated.flatMap((one) => wrongRepeat(one, byId.get(one.id)) ?? []),
    ];
  }

  /** Each row is one that was answered with 201, or, once, one whose outcome is unknown. */
  #wrongRows(rows: readonly StoredRow[]): string[] {
    const open = [...this.#unanswered];
    return rows.flatMap((row) => {
      const told = this.#stored.get(row.id);
      if (told !== undefined) {
        const differing = [...differences(told, row)];
        if (row.received_at !== told.receivedAt) differing.push("received_at");
        return differing.length === 0
          ? []
          : [`${told.name}: ${differing.join(", ")} of ${show(row)}`];
      }
      const index = open.findIndex((one) => differences(one, row).length === 0);
      if (index === -1) return [`nobody was told of ${show(row)}`];
      open.splice(index, 1);
      return [];
    });
  }
}

/** A 200 names an original of the same desk and id, and the fields in which it is another signal. */
function wrongRepeat(repeated: Repeated, row: StoredRow | undefined): string | null {
  const { name, id, desk, differs } = repeated;
  if (row === undefined) return `${name}: repeats ${id}, which is not there`;
  const clientId = repeated.row.client_signal_id;
  if (clientId === null || row.desk !== desk || row.client_signal_id !== clientId) {
    return `${name}: ${clientId} of ${desk} does not repeat ${show(row)}`;
  }
  const want = columns.filter((column) => !isSame(repeated.row[column], row[column]));
  const got = differs === "" ? [] : differs.split(", ");
  if (got.toSorted().join() === want.toSorted().join()) return null;
  return `${name}: differs in ${want.join()} and says ${got.join()}`;
}

function differences(sent: Submitted, row: StoredRow): string[] {
  const own: string[] = columns.filter((column) => !isSame(sent.row[column], row[column]));
  if (sent.desk !== row.desk) own.push("desk");
  if (sent.keyId !== row.key_id) own.push("key_id");
  return own;
}

/** To the bit, but for the sign of zero, which SQLite does not keep. */
function isSame(sent: string | number | null, stored: string | number | null): boolean {
  if (typeof sent === "number" && typeof stored === "number")
    return Object.is(sent + 0, stored + 0);
  return sent === stored;
}

function show(row: StoredRow): string {
  return JSON.stringify(row).slice(0, 400);
}
