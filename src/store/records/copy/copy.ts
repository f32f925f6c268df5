/**
 * Copies everything but sessions and activity to another engine. It can be interrupted at any moment, and goes on after
 * the last signal when it is run again.
 */
import type { Copied, MoveOptions, MoveProgress } from "../../../domain/storage/engine.ts";
import { type HashedSignal, isIntact } from "../../../domain/signal/hash.ts";
import { UserError } from "../../../lib/errors.ts";
import { showHidden } from "../../../lib/text/hidden.ts";
import type { Tx } from "../sql.ts";
import { compareTable, newestId } from "./compare.ts";
import type { Row, Source, Target } from "./ends.ts";
import { partsOf, registry, signals, type Table } from "./rows.ts";

export async function copyAll(
  from: Source,
  to: Target,
  { signal, onProgress = () => {} }: MoveOptions,
): Promise<Copied> {
  const count = await from.sql.get<{ count: number }>("SELECT count(*) AS count FROM signals");
  const progress = { signals: 0, total: count?.count ?? 0 };
  const advance = (phase: MoveProgress["phase"], rows: number): void => {
    signal?.throwIfAborted();
    progress.signals += rows;
    onProgress({ ...progress, phase });
  };
  await refuseOtherCopy(from, to);
  await copyRegistry(from, to);
  await copySignals(from, to, (rows) => advance("copied", rows));
  await to.complete();
  progress.signals = 0;
  const tables: Record<string, number> = {};
  for (const table of [...registry, signals]) {
    tables[table.name] = await compareTable(from, to, table, (rows) =>
      advance("compared", table === signals ? rows : 0),
    );
  }
  await from.refuseWaiting();
  const { ok, checks } = await to.finish();
  if (!ok) throw unsound(to, checks);
  return { tables, newest_id: await newestId(from.sql) };
}

function unsound(
  to: Target,
  checks: Readonly<Record<string, { ok: boolean | null; detail: string }>>,
) {
  const [name, check] = Object.entries(checks).find(([, { ok }]) => ok === false) ?? [];
  return new UserError(
    `${to.name} is not sound (${name}: ${check?.detail}): check the source with signalbox verify, empty the target, then copy again.`,
  );
}

/** What an earlier copy has left is of the same database if all of its desks are. */
async function refuseOtherCopy(from: Source, to: Target): Promise<void> {
  const [ours, theirs] = await Promise.all([uidsOf(from), uidsOf(to)]);
  if ([...theirs].every((uid) => ours.has(uid))) return;
  throw new UserError(
    `${to.name} has the beginning of a copy of another database than ${from.name}: name an empty target, or empty this one.`,
  );
}

async function uidsOf({ sql }: Source | Target): Promise<Set<string>> {
  const desks = await sql.all<{ uid: string }>("SELECT uid FROM desks");
  return new Set(desks.map(({ uid }) => uid));
}

/** All in one transaction. The source may have changed since an earlier copy. */
async function copyRegistry(from: Source, to: Target): Promise<void> {
  await to.sql.transaction(async (tx) => {
    for (const table of registry) {
      // A key may refer to one that follows.
      if (table.name === "api_keys") await copyTable(from, to, tx, table, withoutSuccessor);
      await copyTable(from, to, tx, table);
    }
  });
}

function withoutSuccessor(row: Row): Row {
  return { ...row, successor_id: null };
}

async function copyTable(
  from: Source,
  to: Target,
  tx: Tx,
  table: Table,
  change: (row: Row) => Row = (row) => row,
): Promise<void> {
  for await (const rows of partsOf(from.sql, table)) {
    if (rows.length > 0) await to.write(tx, table.name, rows.map(change), table.key);
  }
}

/** A transaction per part. */
async function copySignals(
  from: Source,
  to: Target,
  onRows: (rows: number) => void,
): Promise<void> {
  const last = await newestId(to.sql);
  const after = last === null ? null : await placeOf(last, from, to);
  onRows(
    (await to.sql.get<{ count: number }>("SELECT count(*) AS count FROM signals"))?.count ?? 0,
  );
  for await (const rows of partsOf(from.sql, signals, after)) {
    if (rows.length === 0) return;
    refuseDamaged(rows, from);
    await to.sql.transaction((tx) => to.write(tx, signals.name, rows, null));
    onRows(rows.length);
  }
}

function refuseDamaged(rows: readonly Row[], { name }: Source): void {
  const damaged = rows.find((row) => !isIntact(row as unknown as HashedSignal));
  if (damaged === undefined) return;
  throw new UserError(
    `Signal ${showHidden(String(damaged["id"]))} of ${name} is damaged, and nothing after it was copied: restore a backup of ${name}, then copy again.`,
  );
}

async function placeOf(id: string, from: Source, to: Target): Promise<number> {
  const row = await from.sql.get<{ seq: number }>("SELECT seq FROM signals WHERE id = $1", id);
  if (row !== null) return row.seq;
  throw new UserError(
    `${to.name} has signals that ${from.name} does not have: name an empty target, or empty this one.`,
  );
}
