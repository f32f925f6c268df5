/** WebAuthn credentials in SQLite. */
import type { Database } from "bun:sqlite";
import type { AuditAction } from "../../domain/audit.ts";
import { NotFoundError, UserError } from "../../domain/errors.ts";
import type { NewPasskey, Passkey, PasskeyCredential } from "../../domain/member.ts";
import { checkPasskeyName } from "../../domain/note.ts";
import type { MemberAuthor, Passkeys } from "../../domain/storage.ts";
import { getAccount } from "./member-rows.ts";
import { Records } from "./records.ts";

interface Row extends Omit<PasskeyCredential, "transports"> {
  readonly transports: string;
}

export class SqlitePasskeys extends Records implements Passkeys {
  add(by: MemberAuthor, passkey: NewPasskey, { onlyIfFirst = false } = {}): void {
    this.change(() => {
      if (onlyIfFirst && this.list(by.memberId).length > 0) {
        throw new UserError("You have a passkey already: sign in with it.");
      }
      insertPasskey(this.db, by.memberId, passkey, this.now());
      this.#audit(by, "member.passkey_added", passkey.name);
    });
  }

  list(memberId: string): Passkey[] {
    return this.db
      .query<Passkey, [string]>(
        `SELECT id, name, created_at, last_used_at FROM passkeys
         WHERE member_id = ? AND removed_at IS NULL ORDER BY created_at, id`,
      )
      .all(memberId);
  }

  find(id: string): PasskeyCredential | null {
    const row = this.db
      .query<Row, [string]>(
        `SELECT passkeys.id, passkeys.member_id, members.desk_id, passkeys.name, passkeys.public_key,
           passkeys.counter, passkeys.transports, passkeys.created_at, passkeys.last_used_at
         FROM passkeys JOIN members ON members.id = passkeys.member_id
         WHERE passkeys.id = ? AND passkeys.removed_at IS NULL AND members.removed_at IS NULL`,
      )
      .get(id);
    return row === null ? null : { ...row, transports: JSON.parse(row.transports) as string[] };
  }

  recordUse(id: string, counter: number): "recorded" | "regressed" | "unknown" {
    return this.change(() => {
      const known = this.find(id);
      if (known === null) return "unknown";
      if (isRegression(counter, known.counter)) return "regressed";
      this.db
        .query("UPDATE passkeys SET counter = ?, last_used_at = ? WHERE id = ?")
        .run(counter, this.now(), id);
      return "recorded";
    });
  }

  removalObstacle(memberId: string, id: string): string | null {
    const passkeys = this.list(memberId);
    const passkey = passkeys.find((one) => one.id === id);
    // Treat another member's passkey as unknown.
    if (passkey === undefined) throw new NotFoundError("There is no such passkey.");
    if (passkeys.length > 1) return null;
    const { has_password, passkeys_required } = getAccount(this.db, memberId, this.now());
    if (passkeys_required) {
      return `"${passkey.name}" is your only passkey, and your desk requires one: add another passkey first.`;
    }
    if (!has_password) {
      return `"${passkey.name}" is your only way to sign in: set a password or add another passkey first.`;
    }
    return null;
  }

  remove(by: MemberAuthor, id: string): void {
    this.change(() => {
      const obstacle = this.removalObstacle(by.memberId, id);
      if (obstacle !== null) throw new UserError(obstacle);
      const name = this.find(id)?.name ?? "";
      this.db.query("UPDATE passkeys SET removed_at = ? WHERE id = ?").run(this.now(), id);
      this.#audit(by, "member.passkey_removed", name);
    });
  }

  #audit(by: MemberAuthor, action: AuditAction, name: string): void {
    const { desk_id: deskId } = getAccount(this.db, by.memberId, this.now());
    this.audit(by, { deskId, action, subjectId: by.memberId, detail: `"${name}"` });
  }
}

/** WebAuthn 7.2, step 22. Authenticators that do not count always send 0. */
function isRegression(counter: number, known: number): boolean {
  return (counter > 0 || known > 0) && counter <= known;
}

/** Call it inside a transaction, with an audit entry. */
export function insertPasskey(
  db: Database,
  memberId: string,
  passkey: NewPasskey,
  now: number,
): void {
  checkPasskeyName(passkey.name);
  const { changes } = db
    .query(
      `INSERT INTO passkeys (id, member_id, name, public_key, counter, transports, created_at)
       VALUES ($id, $memberId, $name, $public_key, $counter, $transports, $now)
       ON CONFLICT (id) DO NOTHING`,
    )
    .run({ ...passkey, transports: JSON.stringify(passkey.transports), memberId, now });
  if (changes === 0) {
    throw new UserError("This passkey is registered already: use another device or browser.");
  }
}

/** Removes all of the member's. Call it inside a transaction, with an audit entry. */
export function removePasskeys(db: Database, memberId: string, now: number): void {
  db.query("UPDATE passkeys SET removed_at = ? WHERE member_id = ? AND removed_at IS NULL").run(
    now,
    memberId,
  );
}
