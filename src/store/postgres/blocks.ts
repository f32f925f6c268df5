/** Notes what each complete block of signals may contain: see `store/records/signals/block-ranges.ts`. */
import { BLOCK_SIGNALS, LISTED_FIELDS, LISTED_UNITS_MAX } from "../records/signals/block-ranges.ts";
import type { Sql } from "../records/sql.ts";

/** Null for a text that is too long. */
const listed = (values: string): string =>
  `(SELECT CASE WHEN length(text) <= ${LISTED_UNITS_MAX} THEN text END
    FROM (SELECT coalesce(json_agg(DISTINCT value), '[]')::text AS text FROM ${values} AS listed (value) WHERE value IS NOT NULL) AS one)`;

const INSERT = `
  WITH own AS MATERIALIZED (SELECT * FROM signals WHERE seq > $1::bigint * ${BLOCK_SIGNALS} AND seq <= ($1 + 1) * ${BLOCK_SIGNALS})
  INSERT INTO signal_blocks (block, received_min, received_max, signals, symbols, others)
  SELECT $1, coalesce(min(received_at), 0), coalesce(max(received_at), 0), count(*),
    ${listed("(SELECT symbol FROM own)")},
    ${listed(`(SELECT unnest(ARRAY[key_id, ${LISTED_FIELDS.join(", ")}]) FROM own)`)}
  FROM own ON CONFLICT (block) DO NOTHING`;

/** `last`: all signals up to this `seq` are committed. */
export async function completeBlocks(sql: Sql, last: number): Promise<void> {
  const next = await sql.get<{ block: number }>(
    "SELECT coalesce(max(block) + 1, 0) AS block FROM signal_blocks",
  );
  for (let block = next?.block ?? 0; (block + 1) * BLOCK_SIGNALS <= last; block += 1) {
    await sql.transaction((tx) => tx.run(INSERT, block));
  }
}
