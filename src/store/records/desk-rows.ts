/** How desks are read. */
import type { Desk, DeskRef } from "../../domain/desk/desk.ts";
import { UserError } from "../../lib/errors.ts";
import { nearest } from "../../lib/text/nearest.ts";
import { shellQuoted } from "../../lib/text/shell.ts";
import type { Reader } from "./sql.ts";

type Flag = "passkeys_required" | "keeps_sent";
type DeskRow = Omit<Desk, Flag> & Readonly<Record<Flag, number>>;

export async function selectDesks(
  sql: Reader,
  clause = "ORDER BY name",
  ...values: DeskRef[]
): Promise<Desk[]> {
  const rows = await sql.all<DeskRow>(
    `SELECT id, name, created_at, archived_at, differing_duplicates, passkeys_required, keeps_sent, keys_max
     FROM desks ${clause}`,
    ...values,
  );
  return rows.map((row) => ({
    ...row,
    passkeys_required: row.passkeys_required === 1,
    keeps_sent: row.keeps_sent === 1,
  }));
}

/** Desks that keep nothing of what requests sent. */
export async function silentDesks(sql: Reader): Promise<ReadonlySet<number>> {
  const rows = await sql.all<{ id: number }>("SELECT id FROM desks WHERE keeps_sent = 0");
  return new Set(rows.map(({ id }) => id));
}

/** Throws {@link UserError} for an unknown name, and suggests the nearest. */
export async function getDesk(sql: Reader, ref: DeskRef): Promise<Desk> {
  const column = typeof ref === "number" ? "id" : "name";
  const [desk] = await selectDesks(sql, `WHERE ${column} = $1`, ref);
  if (desk !== undefined) return desk;
  const name = String(ref);
  const names = (await selectDesks(sql)).map((other) => other.name);
  if (names.length === 0) {
    throw new UserError(`No desk exists yet: create "${name}"`, `desk create ${shellQuoted(name)}`);
  }
  const near = nearest(name, names);
  const guess = near === null ? "" : `; the nearest name is "${near}"`;
  throw new UserError(`There is no desk "${name}"${guess}: list the desks`, "desk list");
}

/** Null stands for all desks. */
export async function deskIdOf(sql: Reader, ref: DeskRef | null): Promise<number | null> {
  return ref === null ? null : (await getDesk(sql, ref)).id;
}

/** Like {@link getDesk}; also throws {@link UserError} for an archived desk. */
export async function activeDesk(sql: Reader, ref: DeskRef): Promise<Desk> {
  const desk = await getDesk(sql, ref);
  if (desk.archived_at === null) return desk;
  throw new UserError(
    `Desk "${desk.name}" is archived: bring it back`,
    `desk archive ${shellQuoted(desk.name)} --undo`,
  );
}
