/** One statement stores a batch of signals: the database's locked row puts the batches of all servers in one order. */
import { encodeTime } from "ulid";
import { type HashedSignal, hashWithoutHead, isIntact } from "../../domain/signal/hash.ts";
import { fieldNames, type Signal } from "../../domain/signal/signal.ts";
import type { Submission } from "../../domain/storage/append.ts";
import { differencesOf, FIND_KEY, isUseDue, type KeyAtWork, mayStore } from "../records/append.ts";
import type { Outcome } from "../records/queue.ts";
import type { Pg } from "./connect.ts";
import { query } from "./sql.ts";

const TYPES: Record<keyof Signal, string> = {
  source: "text",
  type: "text",
  symbol: "text",
  side: "text",
  direction: "text",
  price: "double precision",
  quantity: "double precision",
  signal_time: "bigint",
  client_signal_id: "text",
  metadata: "text",
};
const FIELDS = fieldNames.join(", ");

/**
 * `$1`: the rows as JSON, `$2`: how many, `$3`: the present, `$4`: the version of the keys. An id is the time and the
 * last `seq` before the batch, which are written once for all, and {@link tailOf}. The first two are added to the hash.
 */
const APPEND = `
  WITH turn AS (
    UPDATE turn SET seq = seq + $2, last_ms = greatest(last_ms, $3)
    WHERE keys_version = $4
    RETURNING seq - $2 AS base, last_ms, base32(last_ms) || base32(seq - $2) AS head
  ), stored AS (
    INSERT INTO signals (seq, id, desk_id, key_id, received_at, ${FIELDS}, hash)
    SELECT base + n, head || tail, desk_id, key_id, received_at, ${FIELDS}, int8send(hash # last_ms # base)
    FROM turn, json_to_recordset($1::text::json) AS row (n integer, tail text, desk_id integer, key_id text,
      received_at bigint, ${fieldNames.map((name) => `${name} ${TYPES[name]}`).join(", ")}, hash bigint)
    ON CONFLICT (desk_id, client_signal_id) DO NOTHING
    RETURNING seq, id
  )
  SELECT base + $2 AS last, (SELECT json_object_agg(seq - base, id) FROM stored) AS stored FROM turn`;

const none: ReadonlyMap<number, number> = new Map();

const FIND = `SELECT id, desk_id, key_id, received_at, ${FIELDS}, hash FROM signals
  WHERE (desk_id, client_signal_id) IN
    (SELECT desk_id, client_signal_id FROM json_to_recordset($1::text::json) AS row (desk_id integer, client_signal_id text))`;

const COUNT_DIFFERING = `UPDATE desks SET differing_duplicates = differing_duplicates + $1 WHERE id = $2`;

const TOUCH_KEY = "UPDATE api_keys SET last_used_at = $1 WHERE id = $2";

/** {@link FIND_KEY} with the version that it belongs to. */
const FIND_VERSIONED = `SELECT keys_version, found.* FROM turn LEFT JOIN (${FIND_KEY}) AS found ON true`;

/** Without a key of this id, its columns are null. */
interface VersionedKey extends KeyAtWork {
  readonly keys_version: number;
}

/** Kept in memory between batches. */
const KEYS_MAX = 2_000;

interface Appended {
  readonly last: number;
  /** The place in the batch, from 1, and the id. */
  readonly stored: Readonly<Record<string, string>> | null;
}

interface Candidate {
  readonly submission: Submission;
  readonly index: number;
}

/** The last `seq` that was given. */
export interface Committed {
  readonly outcomes: Outcome[];
  readonly last: number;
}

export class BatchCommitter {
  readonly #keys = new Map<string, KeyAtWork | null>();
  /** Of the oldest of them. */
  #keysVersion = Infinity;
  /** The same at each attempt, so that a signal that was stored by an earlier one is known. */
  readonly #tails = new WeakMap<Submission, string>();

  /** `isRepeat`: an earlier attempt may have stored them. */
  async commit(
    pg: Pg,
    batch: readonly Submission[],
    { isRepeat }: { readonly isRepeat: boolean },
  ): Promise<Committed> {
    if (batch.length === 0) return { outcomes: [], last: 0 };
    for (;;) {
      await this.#loadKeys(pg, batch);
      // Since it was loaded, such a key may have been allowed again.
      if (!batch.every((one) => this.#mayStore(one))) {
        this.#keys.clear();
        await this.#loadKeys(pg, batch);
      }
      const outcomes = batch.map((): Outcome => ({ kind: "unauthorized" }));
      const candidates = batch.flatMap((submission, index) =>
        this.#mayStore(submission) ? [{ submission, index }] : [],
      );
      if (candidates.length === 0) return { outcomes, last: 0 };
      const [row] = await this.#append(pg, candidates);
      if (row === undefined) {
        // A key or desk was changed meanwhile, and nothing was stored.
        this.#keys.clear();
        continue;
      }
      const ids = new Map(Object.entries(row.stored ?? {}));
      for (const [n, id] of ids) {
        const candidate = candidates[Number(n) - 1];
        if (candidate !== undefined) outcomes[candidate.index] = { kind: "stored", id };
      }
      const skipped = candidates.filter((_, at) => !ids.has(String(at + 1)));
      const differing =
        skipped.length === 0 ? none : await this.#compare(pg, skipped, { outcomes, isRepeat });
      // What is stored is known by now, whatever becomes of this.
      await this.#note(pg, candidates, differing).catch(() => {});
      return { outcomes, last: row.last };
    }
  }

  #append(pg: Pg, candidates: readonly Candidate[]) {
    const rows = candidates.map(({ submission }, index) => {
      const { deskId, keyId, receivedAt, signal } = submission;
      const tail = this.#tailOf(submission, index);
      // As text, because no number of JSON has 64 bits.
      const hash = String(hashWithoutHead(tail, submission));
      const own = { n: index + 1, tail, hash, desk_id: deskId, key_id: keyId };
      return { ...own, received_at: receivedAt, ...signal };
    });
    const now = Math.max(...candidates.map(({ submission }) => submission.receivedAt));
    const values = [JSON.stringify(rows), rows.length, now, this.#keysVersion];
    return rowsOf<Appended>(pg, APPEND, values);
  }

  /** A new statement, which sees what the batch had to skip. */
  async #compare(
    pg: Pg,
    skipped: readonly Candidate[],
    { outcomes, isRepeat }: { readonly outcomes: Outcome[]; readonly isRepeat: boolean },
  ): Promise<ReadonlyMap<number, number>> {
    const wanted = skipped.map(({ submission: { deskId, signal } }) => ({
      desk_id: deskId,
      client_signal_id: signal.client_signal_id,
    }));
    const found = await rowsOf<HashedSignal>(pg, FIND, [JSON.stringify(wanted)]);
    const originals = new Map(
      found.map((one) => [`${one.desk_id} ${one.client_signal_id}`, one] as const),
    );
    const differing = new Map<number, number>();
    for (const { submission, index } of skipped) {
      const { deskId, signal } = submission;
      const original = originals.get(`${deskId} ${signal.client_signal_id}`);
      if (original === undefined) throw new Error("a skipped signal has no original");
      if (isRepeat && original.id.endsWith(this.#tailOf(submission, index))) {
        outcomes[index] = { kind: "stored", id: original.id };
        continue;
      }
      if (!isIntact(original)) {
        outcomes[index] = { kind: "damaged", id: original.id };
        continue;
      }
      const differs = differencesOf(original, signal);
      if (differs.length > 0) differing.set(deskId, (differing.get(deskId) ?? 0) + 1);
      outcomes[index] = { kind: "duplicate", id: original.id, differs };
    }
    return differing;
  }

  async #note(
    pg: Pg,
    candidates: readonly Candidate[],
    differing: ReadonlyMap<number, number>,
  ): Promise<void> {
    for (const [deskId, count] of differing) {
      await rowsOf(pg, COUNT_DIFFERING, [count, deskId]);
    }
    await this.#writeLastUsed(pg, candidates);
  }

  /** Each with the version of its moment: if they differ, the lowest makes the batch look again. */
  async #loadKeys(pg: Pg, batch: readonly Submission[]): Promise<void> {
    if (this.#keys.size > KEYS_MAX) this.#keys.clear();
    if (this.#keys.size === 0) this.#keysVersion = Infinity;
    const wanted = new Set(batch.map(({ keyId }) => keyId)).difference(this.#keys);
    await Promise.all(
      [...wanted].map(async (id) => {
        const [row] = await rowsOf<VersionedKey>(pg, FIND_VERSIONED, [id]);
        this.#keysVersion = Math.min(this.#keysVersion, row?.keys_version ?? -1);
        this.#keys.set(id, row?.scope == null ? null : row);
      }),
    );
  }

  #tailOf(submission: Submission, place: number): string {
    const tail = this.#tails.get(submission) ?? tailOf(place);
    this.#tails.set(submission, tail);
    return tail;
  }

  #mayStore({ keyId, receivedAt }: Submission): boolean {
    return mayStore(this.#keys.get(keyId) ?? null, receivedAt);
  }

  async recordUses(pg: Pg, uses: ReadonlyMap<string, number>): Promise<void> {
    for (const [keyId, at] of uses) {
      const [key] = await rowsOf<KeyAtWork>(pg, FIND_KEY, [keyId]);
      if (key !== undefined && isUseDue(key, at)) await rowsOf(pg, TOUCH_KEY, [at, keyId]);
    }
  }

  async #writeLastUsed(pg: Pg, candidates: readonly Candidate[]): Promise<void> {
    for (const { submission } of candidates) {
      const { keyId, receivedAt } = submission;
      const key = this.#keys.get(keyId) ?? null;
      if (key === null || !isUseDue(key, receivedAt)) continue;
      await rowsOf(pg, TOUCH_KEY, [receivedAt, keyId]);
      key.last_used_at = receivedAt;
    }
  }
}

async function rowsOf<Row>(
  pg: Pg,
  sql: string,
  values: readonly (string | number)[],
): Promise<Row[]> {
  return (await query(pg, sql, values)) as unknown as Row[];
}

/** The end of an id: its place in the batch, in order also if others are left out later, and 15 random bits. */
function tailOf(place: number): string {
  return encodeTime(place, 3) + encodeTime(Math.floor(Math.random() * 32 ** 3), 3);
}
