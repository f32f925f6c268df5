/** Reads all signals once, block by block, and finds what no server could have stored. */
import { isUlid } from "../../../domain/signal/id.ts";
import { describeDamaged, type HashedSignal, isIntact } from "../../../domain/signal/hash.ts";
import { isPossible } from "../../../domain/signal/signal.ts";
import {
  BLOCK_SIGNALS,
  type Listed,
  LISTED_FIELDS,
  lists,
} from "../../records/signals/block-ranges.ts";
import type { Pg } from "../connect.ts";

interface Stored extends HashedSignal {
  readonly seq: number;
}

interface Block extends Listed {
  readonly block: number;
  readonly received_min: number;
  readonly received_max: number;
  readonly signals: number;
}

export interface Found {
  readonly signals: number;
  readonly order: readonly string[];
  readonly blocks: readonly string[];
  readonly values: readonly string[];
  readonly hashes: readonly string[];
}

/** Up to the signal `last`. Of each kind, at most about `max` problems. */
export async function findInSignals(pg: Pg, last: number, max: number): Promise<Found> {
  const [order, blocks, values]: [string[], string[], string[]] = [[], [], []];
  const hashes: string[] = [];
  const desks = await desksOfKeys(pg);
  const complete = await lastBlock(pg, blocks);
  let signals = 0;
  let before = "";
  for (let block = 0; block * BLOCK_SIGNALS < last; block += 1) {
    const rows = await pg.unsafe<Stored[]>(
      `SELECT * FROM signals WHERE seq > $1::bigint * ${BLOCK_SIGNALS} AND seq <= ($1 + 1) * ${BLOCK_SIGNALS} ORDER BY seq`,
      [block],
    );
    signals += rows.length;
    for (const row of rows) {
      if (row.id <= before && order.length < max) {
        order.push(`the id of seq ${row.seq} is not greater than the one before`);
      }
      before = row.id;
      const isSound = isUlid(row.id) && row.desk_id === desks.get(row.key_id) && isPossible(row);
      if (!isSound && values.length < max) {
        values.push(`seq ${row.seq} has a value that no signal can have`);
      }
      if (hashes.length < max && !isIntact(row)) hashes.push(describeDamaged(row));
    }
    if (block > complete || blocks.length >= max) continue;
    const [known] = await pg.unsafe<Block[]>("SELECT * FROM signal_blocks WHERE block = $1", [
      block,
    ]);
    if (known !== undefined && !describes(known, rows)) {
      blocks.push(`block ${block} of signal_blocks does not match its signals`);
    }
  }
  return { signals, order, blocks, values, hashes };
}

/** Of keys that may send. */
async function desksOfKeys(pg: Pg): Promise<Map<string, number>> {
  const keys = await pg.unsafe<{ id: string; desk_id: number }[]>(
    "SELECT id, desk_id FROM api_keys WHERE scope = 'send'",
  );
  return new Map(keys.map(({ id, desk_id }) => [id, desk_id]));
}

/** -1 without blocks. */
async function lastBlock(pg: Pg, problems: string[]): Promise<number> {
  const [row] = await pg.unsafe<{ last: number; count: number }[]>(
    "SELECT coalesce(max(block), -1) AS last, count(*) AS count FROM signal_blocks",
  );
  const { last = -1, count = 0 } = row ?? {};
  if (last + 1 !== count) problems.push(`a block before block ${last} of signal_blocks is missing`);
  return last;
}

function describes(block: Block, rows: readonly Stored[]): boolean {
  const times = rows.map(({ received_at }) => received_at);
  return (
    block.signals === rows.length &&
    block.received_min <= Math.min(...times, Infinity) &&
    block.received_max >= Math.max(...times, -Infinity) &&
    lists(block.symbols, new Set(rows.map(({ symbol }) => symbol))) &&
    lists(
      block.others,
      new Set(rows.flatMap((row) => [row.key_id, ...LISTED_FIELDS.map((field) => row[field])])),
    )
  );
}
