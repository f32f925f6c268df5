/** Hands out signals that are what was sent, and no others. */
import { damagedSignal, type HashedSignal, isIntact } from "../../../domain/signal/hash.ts";
import type { StoredSignal } from "../../../domain/signal/stored-signal.ts";
import type { Reader } from "../sql.ts";

/** A signal with what its hash covers. */
export interface Row extends Omit<StoredSignal, "desk" | "key_last4">, HashedSignal {
  readonly desk: string | null;
  readonly key_last4: string | null;
  readonly seq: number;
}

/** Returns null for a damaged signal, which may have no desk or key any more. */
export function toSignal(row: Row): StoredSignal | null {
  if (!isIntact(row) || row.desk === null || row.key_last4 === null) return null;
  const { seq: _, desk_id: __, hash: ___, ...signal } = row;
  return signal as StoredSignal;
}

/** The error for a damaged signal. Its own id may be what is damaged: the index has it, too, in order. */
export async function damageOf(sql: Reader, { seq, id }: Row): Promise<Error> {
  const next = await sql.get<{ id: string }>(
    "SELECT id FROM signals WHERE seq > $1 ORDER BY seq LIMIT 1",
    seq,
  );
  const indexed = await (next === null
    ? sql.get<{ id: string | number | null }>("SELECT max(id) AS id FROM signals")
    : sql.get<{ id: string | number | null }>(
        "SELECT max(id) AS id FROM signals WHERE id < $1",
        next.id,
      ));
  // Damage may have changed the types, too.
  return damagedSignal(String(indexed?.id ?? id));
}
