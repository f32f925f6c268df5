/** Members and their passwords in SQLite; `invitations.ts` has their one-time links. */
import { ulid } from "ulid";
import type { AuditAction } from "../../domain/audit.ts";
import { NotFoundError, UserError } from "../../domain/errors.ts";
import {
  type Account,
  checkEmail,
  type Invitation,
  type MadeLink,
  type Member,
  MEMBERS_MAX,
  type NewPasskey,
  normalizeEmail,
  type SignInMeans,
  type SignInAccount,
} from "../../domain/member.ts";
import { shellQuoted } from "../../domain/shell.ts";
import { ADMIN, type Author, type MemberAuthor, type Members } from "../../domain/storage.ts";
import { findLink, insertLink, spendLinks } from "./invitations.ts";
import {
  endSessions,
  getAccount,
  LOCKED,
  type MemberRow,
  selectMembers,
  toAccount,
  toMember,
  workingPassword,
} from "./member-rows.ts";
import { insertPasskey, removePasskeys } from "./passkeys.ts";
import { Records } from "./records.ts";

export class SqliteMembers extends Records implements Members {
  invite(desk: string, email: string, by: Author = ADMIN): MadeLink {
    const address = checkEmail(email);
    return this.change(() => {
      const { id: deskId } = this.activeDesk(desk);
      const known = this.#findByEmail(address);
      if (known !== null) refuseKnown(known, deskId, by);
      if (known === null) this.#requireRoom(desk, deskId);
      return this.#makeLink(known?.id ?? this.#insert(deskId, address), "member.invited", by);
    });
  }

  reset(desk: string, email: string, { lock = false }: { lock?: boolean } = {}): MadeLink {
    return this.change(() => {
      this.activeDesk(desk);
      const { id, joined_at } = this.#member(desk, email);
      this.#endSessions(id);
      if (lock) this.#lock(id);
      const detail = "the earlier password and passkeys stopped working at once";
      const isLocked = lock && joined_at !== null;
      return this.#makeLink(id, "member.reset", ADMIN, isLocked ? detail : undefined);
    });
  }

  #lock(memberId: string): void {
    removePasskeys(this.db, memberId, this.now());
    // The hash stays, so that the old password cannot be chosen again.
    this.db
      .query("UPDATE members SET password_hash = '!' || ltrim(password_hash, '!') WHERE id = ?")
      .run(memberId);
  }

  remove(desk: string, email: string, by: Author = ADMIN): Member {
    return this.change(() => {
      const account = this.#member(desk, email);
      if (account.id === by.memberId) {
        throw new UserError(
          "You cannot remove yourself: ask another member or an administrator to do it.",
        );
      }
      const now = this.now();
      this.#endSessions(account.id);
      spendLinks(this.db, account.id, now);
      this.db.query("UPDATE members SET removed_at = ? WHERE id = ?").run(now, account.id);
      this.#audit(account, "member.removed", by);
      return { ...toMember(account), removed_at: now, link_expires_at: null };
    });
  }

  list(desk: string): Member[] {
    const { id } = this.getDesk(desk);
    const rows = this.#select("members.desk_id = $value ORDER BY members.email", id);
    return rows.map((row) => toMember(toAccount(row)));
  }

  findInvitation(token: string): Invitation | null {
    const link = findLink(this.db, token, this.now());
    const account = link === null ? null : this.find(link.member_id);
    if (link === null || account === null) return null;
    const kind = account.joined_at === null ? "join" : "reset";
    const { passkeys_required } = account;
    return { member: toMember(account), passkeys_required, kind, expires_at: link.expires_at };
  }

  spendLink(
    token: string,
    { passwordHash = null, passkey = null }: SignInMeans,
    client: string | null = null,
  ): Account | null {
    return this.change(() => {
      const now = this.now();
      const link = findLink(this.db, token, now);
      const account = link === null ? null : this.find(link.member_id);
      if (account === null) return null;
      const { id } = account;
      spendLinks(this.db, id, now);
      removePasskeys(this.db, id, now);
      if (passkey !== null) insertPasskey(this.db, id, passkey, now);
      const sql =
        "UPDATE members SET password_hash = ?, joined_at = coalesce(joined_at, ?) WHERE id = ?";
      this.db.query(sql).run(passwordHash, now, id);
      this.#endSessions(id);
      this.#auditSpent(account, passkey, { memberId: id, client });
      return this.#get(id);
    });
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
    const row = this.#findByEmail(normalizeEmail(email));
    if (row === null) return null;
    const { desk_archived_at } = row;
    return { ...toAccount(row), password_hash: workingPassword(row), desk_archived_at };
  }

  passwordHash(memberId: string): string | null {
    const [row] = this.#select("members.id = $value", memberId);
    return row?.password_hash?.replace(LOCKED, "") ?? null;
  }

  find(memberId: string): Account | null {
    const [row] = this.#select("members.id = $value AND desks.archived_at IS NULL", memberId);
    return row === undefined ? null : toAccount(row);
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

  #makeLink(memberId: string, action: AuditAction, by: Author, detail?: string): MadeLink {
    const replaces_link = this.#get(memberId).link_expires_at !== null;
    const link = insertLink(this.db, memberId, this.now());
    const account = this.#get(memberId);
    this.#audit(account, action, by, detail);
    return { ...link, member: toMember(account), replaces_link };
  }

  #requireRoom(desk: string, deskId: number): void {
    const sql = "SELECT count(*) AS n FROM members WHERE desk_id = ? AND removed_at IS NULL";
    const row = this.db.query<{ n: number }, [number]>(sql).get(deskId);
    if (row !== null && row.n < MEMBERS_MAX) return;
    throw new UserError(
      `Desk "${desk}" has ${MEMBERS_MAX} members, as many as a desk can have: remove one first.`,
    );
  }

  #insert(deskId: number, email: string): string {
    const now = this.now();
    const id = ulid(now);
    this.db
      .query("INSERT INTO members (id, desk_id, email, created_at) VALUES (?, ?, ?, ?)")
      .run(id, deskId, email, now);
    return id;
  }

  #endSessions(memberId: string): void {
    endSessions(this.db, "id", memberId, this.now());
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
      `member list ${shellQuoted(desk)}`,
    );
  }

  #get(memberId: string): Account {
    return getAccount(this.db, memberId, this.now());
  }

  #findByEmail(email: string): MemberRow | null {
    return this.#select("members.email = $value", email)[0] ?? null;
  }

  #select(condition: string, value: string | number): MemberRow[] {
    return selectMembers(this.db, condition, { value, now: this.now() });
  }
}

/** Members are not told which other desks there are. */
function refuseKnown({ email, desk, desk_id, joined_at }: MemberRow, deskId: number, by: Author) {
  const isAdmin = by.memberId === null;
  if (desk_id !== deskId) {
    if (!isAdmin) throw new UserError(`${email} cannot be invited: ask an administrator.`);
    throw new UserError(
      `${email} is a member of desk "${desk}", and can belong to one desk only: remove them there first`,
      `member remove ${desk} ${shellQuoted(email)}`,
    );
  }
  if (joined_at === null) return;
  if (!isAdmin) throw new UserError(`${email} is already a member.`);
  throw new UserError(
    `${email} is already a member of desk "${desk}": to reset the password, make a link`,
    `member reset ${desk} ${shellQuoted(email)}`,
  );
}

function setOrChanged({ has_password }: Account): AuditAction {
  return has_password ? "member.password_changed" : "member.password_set";
}
