/** What the answers promised, compared with the rows of the database. */
import { isUtf8 } from "node:buffer";
import type { RawResponse } from "../kit/raw.ts";
import { query } from "../kit/setup.ts";
import type { Owner } from "./target.ts";

const columns = [
  "source",
  "type",
  "symbol",
  "side",
  "direction",
  "price",
  "quantity",
  "signal_time",
  "client_signal_id",
] as const;

export interface Sent {
  readonly name: string;
  readonly owner: Owner;
  readonly body: Uint8Array;
}

interface Answered extends Sent {
  readonly id: string;
  readonly receivedAt?: number;
}

interface Row {
  readonly id: string;
  readonly desk: string;
  readonly key_id: string;
  readonly received_at: number;
  readonly metadata: string | null;
  readonly [column: string]: unknown;
}

export class Ledger {
  readonly #stored = new Map<string, Answered>();
  readonly #repeated: Answered[] = [];
  readonly #unknown: Sent[] = [];
  readonly #problems: string[] = [];

  /** Notes an answer; null: the outcome is unknown, so the signal may be stored, once. */
  enter(sent: Sent, answer: RawResponse | null): void {
    if (answer === null) this.#unknown.push(sent);
    if (answer === null || answer.status >= 300) return;
    const { id, received_at } = JSON.parse(answer.body) as { id: string; received_at: number };
    if (answer.status === 200) this.#repeated.push({ ...sent, id });
    else if (this.#stored.has(id)) this.#problems.push(`${sent.name}: the id ${id} is not new`);
    else this.#stored.set(id, { ...sent, id, receivedAt: received_at });
  }

  /** Each 201 is one row, as it was sent, of its own desk; each 200 names one; there are no others. */
  problems(dataDir: string): string[] {
    const rows = query<Row>(
      dataDir,
      `SELECT signals.id, desks.name AS desk, key_id, received_at, metadata, ${columns.join(", ")}
       FROM signals JOIN desks ON desks.id = desk_id ORDER BY seq`,
    );
    const byId = new Map(rows.map((row) => [row.id, row]));
    const missing = [...this.#stored.values()].filter(({ id }) => !byId.has(id));
    return [
      ...this.#problems,
      ...missing.map(({ name, id }) => `${name}: got a 201 with ${id}, which is not stored`),
      ...rows.flatMap((row) => this.#problemOf(row) ?? []),
      ...this.#repeated.flatMap((sent) => problemOfRepeat(sent, byId.get(sent.id)) ?? []),
    ];
  }

  #problemOf(row: Row): string | null {
    const sent = this.#stored.get(row.id);
    if (sent !== undefined) {
      const isRight = sent.receivedAt === row.received_at && isStoredAs(sent, row);
      return isRight ? null : `${sent.name}: stored as ${JSON.stringify(row)}`;
    }
    const index = this.#unknown.findIndex((one) => isStoredAs(one, row));
    if (index < 0) return `nobody was told of ${JSON.stringify(row)}`;
    this.#unknown.splice(index, 1);
    return null;
  }
}

function problemOfRepeat({ name, id, owner, body }: Answered, row: Row | undefined): string | null {
  const clientId = parse(body)?.["client_signal_id"];
  const isOriginal = row?.desk === owner.desk && row["client_signal_id"] === clientId;
  return isOriginal ? null : `${name}: ${id} is not the original of ${String(clientId)}`;
}

function isStoredAs({ owner, body }: Sent, row: Row): boolean {
  const sent = parse(body);
  if (sent === null || owner.desk !== row.desk || owner.id !== row.key_id) return false;
  const { metadata = null } = sent;
  const isSameMetadata =
    metadata === null
      ? row.metadata === null
      : Buffer.from(body).includes(row.metadata ?? "?") &&
        Bun.deepEquals(metadata, JSON.parse(row.metadata ?? "null"));
  // SQLite does not keep the sign of zero.
  return isSameMetadata && columns.every((name) => row[name] === plain(sent[name] ?? null));
}

const plain = (value: unknown): unknown => (typeof value === "number" ? value + 0 : value);

/** By means other than the service's own reader; null if the bytes are not a JSON object. */
function parse(body: Uint8Array): Record<string, unknown> | null {
  if (!isUtf8(body)) return null;
  try {
    return JSON.parse(new TextDecoder().decode(body)) as Record<string, unknown> | null;
  } catch {
    return null;
  }
}
