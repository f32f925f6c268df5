/** Finds desks by name. */
import type { Database } from "bun:sqlite";
import type { Desk } from "../../domain/desk.ts";
import { UserError } from "../../domain/errors.ts";
import { nearest } from "../../domain/nearest.ts";
import { shellQuoted } from "../../domain/shell.ts";

const DESK_COLUMNS = "id, name, created_at, differing_duplicates, passkeys_required, keys_max";

type Row = Omit<Desk, "passkeys_required"> & { readonly passkeys_required: number };

/** Sorted by name. */
export function listDesks(db: Database): Desk[] {
  return db.query<Row, []>(`SELECT ${DESK_COLUMNS} FROM desks ORDER BY name`).all().map(toDesk);
}

export function findDesk(db: Database, name: string): Desk | null {
  const sql = `SELECT ${DESK_COLUMNS} FROM desks WHERE name = ?`;
  const row = db.query<Row, [string]>(sql).get(name);
  return row === null ? null : toDesk(row);
}

function toDesk(row: Row): Desk {
  return { ...row, passkeys_required: row.passkeys_required === 1 };
}

/** Throws {@link UserError} for an unknown name, and suggests the nearest. */
export function getDesk(db: Database, name: string): Desk {
  const desk = findDesk(db, name);
  if (desk !== null) return desk;
  const names = listDesks(db).map((other) => other.name);
  if (names.length === 0) {
    throw new UserError(`No desk exists yet: create "${name}"`, `desk create ${shellQuoted(name)}`);
  }
  const near = nearest(name, names);
  const guess = near === null ? "" : `; the nearest name is "${near}"`;
  throw new UserError(`There is no desk "${name}"${guess}: list the desks`, "desk list");
}
