/** Members, their passwords and their one-time links in SQLite, which has only the SHA-256 of a link's token. */
import { ulid } from "ulid";
import type { AuditAction } from "../../domain/audit.ts";
import { NotFoundError, UserError } from "../../domain/errors.ts";
import {
  type Account,
  checkEmail,
  generateToken,
  hashToken,
  type Invitation,
  isWellFormedToken,
  LINK_LIFETIME_MS,
  type MadeLink,
  type Member,
  type NewPasskey,
  type SignInAccount,
} from "../../domain/member.ts";
import { shellQuoted } from "../../domain/shell.ts";
import { ADMIN, type Author, type MemberAuthor, type Members } from "../../domain/storage.ts";
import { insertPasskey, removePasskeys } from "./passkeys.ts";
import { Records } from "./records.ts";

type Row = Omit<SignInAccount, "has_password" | "passkeys_required"> & {
  readonly passkeys_required: number;
};

interface OpenLink {
  readonly member_id: string;
  readonly expires_at: number;
}

/** Marks the hash of a locked password, as in `/etc/shadow`. */
const LOCKED = /^!/;

export class SqliteMembers extends Records implements Members {
  invite(desk: string, email: string): MadeLink {
    const address = checkEmail(email);
    return this.change(() => {
      const { id: deskId } = this.getDesk(desk);
      const known = this.#findByEmail(address);
      if (known !== null && known.desk_id !== deskId) {
        throw new UserError(
          `${address} is a member of desk "${known.desk}", and can belong to one desk only: remove them there first`,
          `desk remove-member ${known.desk} ${shellQuoted(address)}`,
        );
      }
      if (known !== null && known.joined_at !== null) {
        throw new UserError(
          `${address} is already a member of desk "${desk}": to reset the password, make a link`,
          `desk reset ${desk} ${shellQuoted(address)}`,
        );
      }
      return this.#makeLink(known?.id ?? this.#insert(deskId, address), "member.invited");
    });
  }

  reset(desk: string, email: string, { lock = false }: { lock?: boolean } = {}): MadeLink {
    return this.change(() => {
      const { id, joined_at } = this.#member(desk, email);
      this.#endSessions(id);
      if (lock) this.#lock(id);
      const detail = "the earlier password and passkeys stopped working at once";
      const isLocked = lock && joined_at !== null;
      return this.#makeLink(id, "member.reset", isLocked ? detail : undefined);
    });
  }

  #lock(memberId: string): void {
    removePasskeys(this.db, memberId, this.now());
    // The hash stays, so that the old password cannot be chosen again.
    this.db
      .query("UPDATE members SET password_hash = '!' || ltrim(password_hash, '!') WHERE id = ?")
      .run(memberId);
  }

  remove(desk: string, email: string): Member {
    return this.change(() => {
      const account = this.#member(desk, email);
      const now = this.now();
      this.#endSessions(account.id);
      this.#spendLinks(account.id);
      this.db.query("UPDATE members SET removed_at = ? WHERE id = ?").run(now, account.id);
      this.#audit(account, "member.removed", ADMIN);
      return { ...toMember(account), removed_at: now, link_expires_at: null };
    });
  }

  list(desk: string): Member[] {
    const { id } = this.getDesk(desk);
    return this.#select("members.desk_id = $value ORDER BY members.email", id).map(toMember);
  }

  findInvitation(token: string): Invitation | null {
    const link = this.#findLink(token);
    const account = link === null ? null : this.find(link.member_id);
    if (link === null || account === null) return null;
    const kind = account.joined_at === null ? "join" : "reset";
    const { passkeys_required } = account;
    return { member: toMember(account), passkeys_required, kind, expires_at: link.expires_at };
  }

  spendWithPassword(
    token: string,
    passwordHash: string,
    client: string | null = null,
  ): Account | null {
    return this.#spend(token, { passwordHash, passkey: null }, client);
  }

  spendWithPasskey(
    token: string,
    passkey: NewPasskey,
    client: string | null = null,
  ): Account | null {
    return this.#spend(token, { passwordHash: null, passkey }, client);
  }

  setPassword(by: MemberAuthor, passwordHash: string): Account {
    const { memberId } = by;
    return this.change(() => {
      const account = this.#get(memberId);
      this.#audit(account, setOrChanged(account), by);
      this.db
        .query("UPDATE members SET password_hash = ? WHERE id = ?")
        .run(passwordHash, memberId);
      this.#endSessions(memberId);
      return this.#get(memberId);
    });
  }

  signOutEverywhere(by: MemberAuthor): Account {
    const { memberId } = by;
    return this.change(() => {
      this.#audit(this.#get(memberId), "member.signed_out_everywhere", by);
      this.#endSessions(memberId);
      return this.#get(memberId);
    });
  }

  findForSignIn(email: string): SignInAccount | null {
    const row = this.#findByEmail(email.normalize("NFC").toLowerCase());
    return row === null ? null : { ...toAccount(row), password_hash: workingPassword(row) };
  }

  passwordHash(memberId: string): string | null {
    const [row] = this.#select("members.id = $value", memberId);
    return row?.password_hash?.replace(LOCKED, "") ?? null;
  }

  find(memberId: string): Account | null {
    const [row] = this.#select("members.id = $value", memberId);
    return row === undefined ? null : toAccount(row);
  }

  #spend(
    token: string,
    { passwordHash, passkey }: { passwordHash: string | null; passkey: NewPasskey | null },
    client: string | null,
  ): Account | null {
    return this.change(() => {
      const now = this.now();
      const link = this.#findLink(token);
      if (link === null) return null;
      const account = this.#get(link.member_id);
      const { id } = account;
      this.#spendLinks(id);
      removePasskeys(this.db, id, now);
      if (passkey !== null) insertPasskey(this.db, id, passkey, now);
      this.db
        .query(
          "UPDATE members SET password_hash = ?, joined_at = coalesce(joined_at, ?) WHERE id = ?",
        )
        .run(passwordHash, now, id);
      this.#endSessions(id);
      this.#auditSpent(account, passkey, { memberId: id, client });
      return this.#get(id);
    });
  }

  #auditSpent(account: Account, passkey: NewPasskey | null, by: Author): void {
    const means = passkey === null ? "with a password" : `with the passkey "${passkey.name}"`;
    if (account.joined_at === null) {
      this.#audit(account, "member.joined", by, means);
      return;
    }
    const action = passkey === null ? setOrChanged(account) : "member.passkey_added";
    const taken = passkey === null ? "passkeys" : "password and passkeys";
    this.#audit(account, action, by, `by a one-time link; earlier ${taken} were taken away`);
  }

  #makeLink(memberId: string, action: AuditAction, detail?: string): MadeLink {
    const replaces_link = this.#get(memberId).link_expires_at !== null;
    const link = this.#insertLink(memberId);
    const account = this.#get(memberId);
    this.#audit(account, action, ADMIN, detail);
    return { ...link, member: toMember(account), replaces_link };
  }

  /** Also revokes the earlier ones. */
  #insertLink(memberId: string): { token: string; expires_at: number } {
    this.#spendLinks(memberId);
    const now = this.now();
    const token = generateToken();
    const expires_at = now + LINK_LIFETIME_MS;
    this.db
      .query(
        `INSERT INTO invitations (id, token_hash, member_id, created_at, expires_at)
         VALUES (?, ?, ?, ?, ?)`,
      )
      .run(ulid(now), hashToken(token), memberId, now, expires_at);
    return { token, expires_at };
  }

  /** Returns null for a link that is unknown, expired or used, or whose member was removed. */
  #findLink(token: string): OpenLink | null {
    if (!isWellFormedToken(token)) return null;
    return this.db
      .query<OpenLink, [Uint8Array, number]>(
        `SELECT invitations.member_id, invitations.expires_at
         FROM invitations JOIN members ON members.id = invitations.member_id
         WHERE invitations.token_hash = ? AND invitations.expires_at > ?
           AND invitations.spent_at IS NULL AND members.removed_at IS NULL`,
      )
      .get(hashToken(token), this.now());
  }

  #spendLinks(memberId: string): void {
    this.db
      .query("UPDATE invitations SET spent_at = ? WHERE member_id = ? AND spent_at IS NULL")
      .run(this.now(), memberId);
  }

  #insert(deskId: number, email: string): string {
    const now = this.now();
    const id = ulid(now);
    this.db
      .query("INSERT INTO members (id, desk_id, email, created_at) VALUES (?, ?, ?, ?)")
      .run(id, deskId, email, now);
    return id;
  }

  /** Always increases `signed_out_at`: twice in a millisecond, and after the clock was set back. */
  #endSessions(memberId: string): void {
    this.db
      .query("UPDATE members SET signed_out_at = max(?, signed_out_at + 1) WHERE id = ?")
      .run(this.now(), memberId);
  }

  #audit(
    { id: subjectId, desk_id: deskId }: Account,
    action: AuditAction,
    by: Author,
    detail?: string,
  ): void {
    this.audit(by, { deskId, action, subjectId, detail: detail ?? null });
  }

  #member(desk: string, email: string): Account {
    const address = checkEmail(email);
    const { id } = this.getDesk(desk);
    const row = this.#findByEmail(address);
    if (row !== null && row.desk_id === id) return toAccount(row);
    throw new NotFoundError(
      `Desk "${desk}" has no member ${address}: list its members`,
      `desk members ${desk}`,
    );
  }

  #get(memberId: string): Account {
    const account = this.find(memberId);
    if (account === null) throw new NotFoundError("There is no such member.");
    return account;
  }

  #findByEmail(email: string): Row | null {
    return this.#select("members.email = $value", email)[0] ?? null;
  }

  #select(condition: string, value: string | number): Row[] {
    return this.db
      .query<Row, { value: string | number; now: number }>(
        `SELECT members.id, desks.name AS desk, members.desk_id, members.email, members.created_at,
           members.joined_at, members.removed_at, members.signed_out_at, members.password_hash,
           desks.passkeys_required,
           (SELECT count(*) FROM passkeys
            WHERE member_id = members.id AND removed_at IS NULL) AS passkeys,
           (SELECT max(expires_at) FROM invitations
            WHERE member_id = members.id AND spent_at IS NULL AND expires_at > $now) AS link_expires_at
         FROM members JOIN desks ON desks.id = members.desk_id
         WHERE members.removed_at IS NULL AND ${condition}`,
      )
      .all({ value, now: this.now() });
  }
}

function setOrChanged({ has_password }: Account): AuditAction {
  return has_password ? "member.password_changed" : "member.password_set";
}

/** If the desk requires passkeys, a member's password stops working once they have one. */
function workingPassword({ password_hash, passkeys_required, passkeys }: Row): string | null {
  if (password_hash !== null && LOCKED.test(password_hash)) return null;
  return passkeys_required === 1 && passkeys > 0 ? null : password_hash;
}

function toAccount(row: Row): Account {
  const { password_hash: _hash, ...account } = row;
  return {
    ...account,
    has_password: workingPassword(row) !== null,
    passkeys_required: row.passkeys_required === 1,
  };
}

function toMember(row: Row | Account): Member {
  const {
    desk_id: _desk,
    passkeys_required: _required,
    signed_out_at: _at,
    ...member
  } = "password_hash" in row ? toAccount(row) : row;
  return member;
}
