/**
 * Carries over what a restore must not undo: desks, keys, members and the audit of the database that was
 * there before. Both databases have one history up to some moment, and each may have gone on without the
 * other since. So nothing is matched by the number of its row: both may have given it to different things.
 */
import type { Database } from "bun:sqlite";
import { quoteName } from "./schema.ts";

/** Every table but the signals and what is derived from them, each after the tables that it refers to. */
export const CARRIED_TABLES = [
  "desks",
  "api_keys",
  "members",
  "invitations",
  "passkeys",
  "audit",
] as const;

export type Carried = Readonly<Record<(typeof CARRIED_TABLES)[number], readonly Row[]>>;
type Row = Readonly<Record<string, string | number | Uint8Array | null>>;

/** `failure`: why nothing was carried over. */
export type KeysTaken =
  | { readonly minted: number; readonly revoked: number; readonly failure: null }
  | { readonly failure: string };

export function readCarried(db: Database): Carried {
  const tables = CARRIED_TABLES.map((table) => [
    table,
    db.query<Row, []>(`SELECT * FROM ${quoteName(table)} ORDER BY id`).all(),
  ]);
  return Object.fromEntries(tables) as Carried;
}

/** To be called inside a transaction. */
export function carryOver(db: Database, before: Carried): KeysTaken {
  const restored = readCarried(db);
  const failure = findOtherServer(restored.desks, before.desks);
  if (failure !== null) return { failure };
  const deskIds = matchDesks(restored.desks, before.desks);
  const withDesk = (row: Row): Row => ({ ...row, desk_id: deskIds.get(row["desk_id"]) ?? null });
  upsert(
    db,
    "desks",
    before.desks.map((desk) => ({ ...desk, id: deskIds.get(desk["id"]) ?? null })),
  );
  upsert(db, "api_keys", before.api_keys.map(withDesk));
  freeAddresses(db, before.members);
  upsert(db, "members", before.members.map(withDesk));
  upsert(db, "invitations", before.invitations);
  upsert(db, "passkeys", before.passkeys);
  mergeAudit(db, restored.audit, before.audit.map(withDesk));
  return { ...countKeys(restored.api_keys, before.api_keys), failure: null };
}

/** Whether each desk of the one has the same number in the other. */
export function haveSameDesks(before: readonly Row[], after: readonly Row[]): boolean {
  const names = new Map(after.map(({ id, name }) => [id, name]));
  return before.every(({ id, name }) => names.get(id) === name);
}

function findOtherServer(restored: readonly Row[], before: readonly Row[]): string | null {
  if (restored.length === 0) return null;
  if (before.length === 0) return "it has none of the backup's desks";
  const known = new Set(before.map(({ name, created_at }) => JSON.stringify([name, created_at])));
  const isShared = restored.some(({ name, created_at }) =>
    known.has(JSON.stringify([name, created_at])),
  );
  return isShared ? null : "the backup is of another server";
}

/** The number of each desk of the database before, in the restored one: a desk is known by its name. */
function matchDesks(restored: readonly Row[], before: readonly Row[]): Map<unknown, number> {
  const numbers = new Map(restored.map(({ id, name }) => [name, Number(id)]));
  const taken = new Set(numbers.values());
  let next = Math.max(0, ...[...restored, ...before].map(({ id }) => Number(id))) + 1;
  const matched = before.map(({ id, name }): [unknown, number] => {
    const unused = taken.has(Number(id)) ? next++ : Number(id);
    return [id, numbers.get(name) ?? unused];
  });
  return new Map(matched);
}

/**
 * Of two members with one address, both invited since the histories parted, the one of the database
 * before stays. Not for one that the backup knows as removed: then the backup is the newer one.
 */
function freeAddresses(db: Database, members: readonly Row[]): void {
  const remove = db.query(
    `UPDATE members SET removed_at = $created_at WHERE email = $email AND id <> $id AND removed_at IS NULL
       AND NOT EXISTS (SELECT 1 FROM members WHERE id = $id AND removed_at IS NOT NULL)`,
  );
  for (const { id, email, created_at, removed_at } of members) {
    if (removed_at === null) remove.run({ id, email, created_at } as Record<string, string>);
  }
}

/**
 * The rows of both, those that both have once, by their content: each side has given numbers of its own.
 * Rows keep the order that they have on their side.
 */
function mergeAudit(db: Database, restored: readonly Row[], before: readonly Row[]): void {
  const counts = new Map<string, number>();
  for (const row of restored) counts.set(contentOf(row), (counts.get(contentOf(row)) ?? 0) + 1);
  const added = before.filter((row) => {
    const count = counts.get(contentOf(row)) ?? 0;
    counts.set(contentOf(row), count - 1);
    return count <= 0;
  });
  if (added.length === 0) return;
  const rows = mergeByTime(restored, added);
  db.run("DELETE FROM audit");
  upsert(
    db,
    "audit",
    rows.map((row, index) => ({ ...row, id: index + 1 })),
  );
}

function contentOf({ id: _number, ...content }: Row): string {
  return JSON.stringify(content);
}

function mergeByTime(rows: readonly Row[], others: readonly Row[]): Row[] {
  const merged: Row[] = [];
  let next = 0;
  for (const row of rows) {
    for (; Number(others[next]?.["at"]) < Number(row["at"]); next += 1) {
      merged.push(others[next] as Row);
    }
    merged.push(row);
  }
  return [...merged, ...others.slice(next)];
}

function countKeys(
  restored: readonly Row[],
  before: readonly Row[],
): { minted: number; revoked: number } {
  const known = new Map(restored.map((key) => [key["id"], key]));
  const isRevokedSince = ({ id, revoked_at }: Row): boolean =>
    revoked_at !== null && known.get(id ?? null)?.["revoked_at"] === null;
  return {
    minted: before.filter(({ id }) => !known.has(id ?? null)).length,
    revoked: before.filter(isRevokedSince).length,
  };
}

/**
 * Either side may be the newer one. What is revoked, removed, spent, required or expires on one side does
 * so afterwards; counts and times of use are the greater ones. Everything else is as it was before.
 */
const merged: Readonly<Record<string, "min" | "max">> = {
  created_at: "min",
  joined_at: "min",
  expires_at: "min",
  revoked_at: "min",
  removed_at: "min",
  spent_at: "min",
  signed_out_at: "max",
  last_used_at: "max",
  counter: "max",
  differing_duplicates: "max",
  passkeys_required: "max",
};

function upsert(db: Database, table: string, rows: readonly Row[]): void {
  const names = Object.keys(rows[0] ?? {});
  const columns = names.map(quoteName).join(", ");
  const values = names.map(() => "?").join(", ");
  const updates = names.map((name) => `${quoteName(name)} = ${valueOf(name)}`).join(", ");
  for (const row of rows) {
    db.query(
      `INSERT INTO ${quoteName(table)} (${columns}) VALUES (${values}) ON CONFLICT (id) DO UPDATE SET ${updates}`,
    ).run(...Object.values(row));
  }
}

/** SQLite's `min` and `max` are null where one of the two is. */
function valueOf(name: string): string {
  const column = quoteName(name);
  const choice = merged[name];
  if (choice !== undefined) {
    return `${choice}(ifnull(${column}, excluded.${column}), ifnull(excluded.${column}, ${column}))`;
  }
  // A new password ends every session: the later end has the newer password.
  if (name === "password_hash") {
    return `iif(excluded.signed_out_at >= signed_out_at, excluded.${column}, ${column})`;
  }
  return `excluded.${column}`;
}
