/** WebAuthn credentials. */
import type { AuditAction } from "../../domain/audit/audit.ts";
import { checkPasskeyName } from "../../domain/desk/note.ts";
import type { NewPasskey, Passkey, PasskeyCredential } from "../../domain/member/member.ts";
import type { MemberAuthor } from "../../domain/storage/author.ts";
import type { Passkeys } from "../../domain/storage/members.ts";
import { NotFoundError, UserError } from "../../lib/errors.ts";
import { addEntry } from "./audit.ts";
import { getAccount } from "./member-rows.ts";
import type { Reader, Sql, Tx } from "./sql.ts";

interface Row extends Omit<PasskeyCredential, "transports"> {
  readonly transports: string;
}

export function passkeys(sql: Sql) {
  return {
    add(by, passkey, { onlyIfFirst = false } = {}) {
      return sql.transaction(async (tx) => {
        if (onlyIfFirst && (await listPasskeys(tx, by.memberId)).length > 0) {
          throw new UserError("You have a passkey already: sign in with it.");
        }
        await insertPasskey(tx, by.memberId, passkey);
        await addPasskeyEntry(tx, by, "member.passkey_added", passkey.name);
      });
    },

    list: (memberId) => listPasskeys(sql, memberId),

    find: (id) => findPasskey(sql, id),

    recordUse(id, counter) {
      return sql.transaction(async (tx) => {
        const known = await findPasskey(tx, id);
        if (known === null) return "unknown";
        if (isRegression(counter, known.counter)) return "regressed";
        const update = "UPDATE passkeys SET counter = $1, last_used_at = $2 WHERE id = $3";
        await tx.run(update, counter, tx.now, id);
        return "recorded";
      });
    },

    removalObstacle: (memberId, id) => removalObstacle(sql, memberId, id),

    remove(by, id) {
      return sql.transaction(async (tx) => {
        const obstacle = await removalObstacle(tx, by.memberId, id);
        if (obstacle !== null) throw new UserError(obstacle);
        const name = (await findPasskey(tx, id))?.name ?? "";
        await tx.run("UPDATE passkeys SET removed_at = $1 WHERE id = $2", tx.now, id);
        await addPasskeyEntry(tx, by, "member.passkey_removed", name);
      });
    },
  } satisfies Passkeys;
}

function listPasskeys(sql: Reader, memberId: string): Promise<Passkey[]> {
  return sql.all(
    `SELECT id, name, created_at, last_used_at FROM passkeys
     WHERE member_id = $1 AND removed_at IS NULL ORDER BY created_at, id`,
    memberId,
  );
}

async function findPasskey(sql: Reader, id: string): Promise<PasskeyCredential | null> {
  const row = await sql.get<Row>(
    `SELECT passkeys.id, passkeys.member_id, members.desk_id, passkeys.name, passkeys.public_key,
       passkeys.counter, passkeys.transports, passkeys.created_at, passkeys.last_used_at
     FROM passkeys JOIN members ON members.id = passkeys.member_id
     WHERE passkeys.id = $1 AND passkeys.removed_at IS NULL AND members.removed_at IS NULL`,
    id,
  );
  return row === null ? null : { ...row, transports: JSON.parse(row.transports) as string[] };
}

async function removalObstacle(sql: Reader, memberId: string, id: string): Promise<string | null> {
  const list = await listPasskeys(sql, memberId);
  const passkey = list.find((one) => one.id === id);
  // Treat another member's passkey as unknown.
  if (passkey === undefined) throw new NotFoundError("There is no such passkey.");
  if (list.length > 1) return null;
  const { has_password, passkeys_required } = await getAccount(sql, memberId);
  if (passkeys_required) {
    return `"${passkey.name}" is your only passkey, and your desk requires one: add another passkey first.`;
  }
  if (!has_password) {
    return `"${passkey.name}" is your only way to sign in: set a password or add another passkey first.`;
  }
  return null;
}

async function addPasskeyEntry(
  tx: Tx,
  by: MemberAuthor,
  action: AuditAction,
  name: string,
): Promise<void> {
  const { desk_id: deskId } = await getAccount(tx, by.memberId);
  await addEntry(tx, by, { deskId, action, subjectId: by.memberId, detail: `"${name}"` });
}

/** WebAuthn 7.2, step 22. Authenticators that do not count always send 0. */
function isRegression(counter: number, known: number): boolean {
  return (counter > 0 || known > 0) && counter <= known;
}

export async function insertPasskey(tx: Tx, memberId: string, passkey: NewPasskey): Promise<void> {
  checkPasskeyName(passkey.name);
  const added = await tx.run(
    `INSERT INTO passkeys (id, member_id, name, public_key, counter, transports, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING`,
    passkey.id,
    memberId,
    passkey.name,
    passkey.public_key,
    passkey.counter,
    JSON.stringify(passkey.transports),
    tx.now,
  );
  if (added === 0) {
    throw new UserError("This passkey is registered already: use another device or browser.");
  }
}

/** Removes all of the member's. */
export async function removePasskeys(tx: Tx, memberId: string): Promise<void> {
  const remove = "UPDATE passkeys SET removed_at = $1 WHERE member_id = $2 AND removed_at IS NULL";
  await tx.run(remove, tx.now, memberId);
}
