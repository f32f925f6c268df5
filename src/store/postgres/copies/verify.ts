/** Checks the content and the order of a database, and changes nothing. Pages are `pg_amcheck`'s. */
import { decodeTime } from "ulid";
import type { Check, Verification } from "../../../domain/storage/files.ts";
import { placeName } from "../../../lib/place.ts";
import type { Pg } from "../connect.ts";
import { VERSION } from "../schema.ts";
import { schemaProblems } from "./schema-check.ts";
import { findInSignals } from "./verify-signals.ts";

const PROBLEMS_TOLD_MAX = 5;
const PAGES: Check = { ok: null, detail: "not checked: run pg_amcheck for pages and indexes" };

const REFERENCES = `
  SELECT conrelid::regclass::text AS child, own.attname AS "column", confrelid::regclass::text AS parent, other.attname AS key
  FROM pg_constraint
    JOIN pg_attribute AS own ON own.attrelid = conrelid AND own.attnum = conkey[1]
    JOIN pg_attribute AS other ON other.attrelid = confrelid AND other.attnum = confkey[1]
  WHERE contype = 'f' AND connamespace = current_schema()::regnamespace`;

/** Reads the rows, not the index that should have refused them. */
const TWICE = `SELECT desk_id, client_signal_id AS id FROM signals WHERE client_signal_id IS NOT NULL
  GROUP BY desk_id, client_signal_id HAVING count(*) > 1 LIMIT ${PROBLEMS_TOLD_MAX}`;

const NEWEST = "SELECT id, seq FROM signals ORDER BY seq DESC LIMIT 1";

const SCHEMA_NOT_CHECKED: Check = {
  ok: null,
  detail: "not checked: the user of the database may not create a schema in it",
};
const NOT_CHECKED: Check = { ok: null, detail: "not checked" };
const NONE_RAN = {
  integrity: PAGES,
  foreign_keys: NOT_CHECKED,
  unique: NOT_CHECKED,
  ids_rising: NOT_CHECKED,
  blocks: NOT_CHECKED,
  values: NOT_CHECKED,
  hashes: NOT_CHECKED,
  turn: NOT_CHECKED,
};

interface Reference {
  readonly child: string;
  readonly column: string;
  readonly parent: string;
  readonly key: string;
}

interface Newest {
  readonly id: string;
  readonly seq: number;
}

export async function verifyWith(pg: Pg, url: string): Promise<Verification> {
  const problems = await schemaProblems(pg);
  const schema = problems === null ? SCHEMA_NOT_CHECKED : checkOf(problems);
  const [newest] = schema.ok !== false ? await pg.unsafe<Newest[]>(NEWEST) : [];
  const { signals, checks } =
    schema.ok !== false ? await checkRows(pg, newest) : { signals: 0, checks: NONE_RAN };
  return {
    ok: [schema, ...Object.values(checks)].every(({ ok }) => ok !== false),
    file: placeName(url),
    version: VERSION,
    signals,
    newest_id: newest?.id ?? null,
    checks: { schema, ...checks },
  };
}

async function checkRows(pg: Pg, newest: Newest | undefined) {
  const found = await findInSignals(pg, newest?.seq ?? 0, PROBLEMS_TOLD_MAX);
  const checks = {
    integrity: PAGES,
    foreign_keys: checkOf(await lonelyRows(pg)),
    unique: checkOf(await storedTwice(pg)),
    ids_rising: checkOf(found.order),
    blocks: checkOf(found.blocks),
    values: checkOf(found.values),
    hashes: checkOf(found.hashes),
    turn: checkOf(await turnProblems(pg, newest)),
  };
  return { signals: found.signals, checks };
}

async function lonelyRows(pg: Pg): Promise<string[]> {
  const problems: string[] = [];
  for (const { child, column, parent, key } of await pg.unsafe<Reference[]>(REFERENCES)) {
    const [row] = await pg.unsafe<{ count: number }[]>(
      `SELECT count(*) AS count FROM ${child} WHERE ${column} IS NOT NULL
         AND NOT EXISTS (SELECT FROM ${parent} AS parent WHERE parent.${key} = ${child}.${column})`,
    );
    if (row !== undefined && row.count > 0) {
      problems.push(`${row.count} rows of ${child} have no row in ${parent}`);
    }
  }
  return problems;
}

async function storedTwice(pg: Pg): Promise<string[]> {
  const rows = await pg.begin("read only", async (tx) => {
    await tx.unsafe("SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off");
    return tx.unsafe<{ desk_id: number; id: string }[]>(TWICE);
  });
  return rows.map(
    ({ desk_id, id }) =>
      `desk ${desk_id} has several signals with the client_signal_id ${JSON.stringify(id)}`,
  );
}

/** The next signal would get a number or an id that is not higher. `newest`: or a signal that was stored after it. */
async function turnProblems(pg: Pg, newest: Newest | undefined): Promise<string[]> {
  const [turn] = await pg.unsafe<{ seq: number; last_ms: number }[]>(
    "SELECT seq, last_ms FROM turn",
  );
  if (turn === undefined) return ["turn has no row"];
  if (newest === undefined) return [];
  const problems: string[] = [];
  if (turn.seq < newest.seq)
    problems.push(`turn.seq is ${turn.seq}, and a signal has ${newest.seq}`);
  if (turn.last_ms < decodeTime(newest.id)) problems.push("turn.last_ms is before the newest id");
  return problems;
}

function checkOf(problems: readonly string[]): Check {
  return {
    ok: problems.length === 0,
    detail: problems.slice(0, PROBLEMS_TOLD_MAX).join("; ") || "ok",
  };
}
