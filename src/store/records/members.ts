/** Members and their passwords. */
import { ulid } from "ulid";
import type { AuditAction } from "../../domain/audit/audit.ts";
import type { DeskRef } from "../../domain/desk/desk.ts";
import {
  type Account,
  checkEmail,
  type MadeLink,
  type MemberRole,
  MEMBERS_MAX,
  type NewPasskey,
  normalizeEmail,
} from "../../domain/member/member.ts";
import { ADMIN, type Author } from "../../domain/storage/author.ts";
import type { Members } from "../../domain/storage/members.ts";
import { NotFoundError, UserError } from "../../lib/errors.ts";
import { shellQuoted } from "../../lib/text/shell.ts";
import { activeDesk, getDesk } from "./desk-rows.ts";
import {
  addMemberEntry,
  endSessions,
  findAccount,
  findByEmail,
  findLink,
  getAccount,
  insertLink,
  LOCKED,
  type MemberRow,
  selectMembers,
  spendLinks,
  toAccount,
  toMember,
  workingPassword,
} from "./member-rows.ts";
import { removeAddress } from "./notices/places.ts";
import { insertPasskey, removePasskeys } from "./passkeys.ts";
import type { Reader, Sql, Tx } from "./sql.ts";

export function members(sql: Sql) {
  return {
    async invite(desk, email, by = ADMIN, { role } = {}) {
      const address = checkEmail(email);
      return sql.transaction(async (tx) => {
        const { id: deskId, name } = await activeDesk(tx, desk);
        const known = await findByEmail(tx, address);
        if (known !== null) refuseKnown(known, deskId, by);
        if (known === null) await requireRoom(tx, name, deskId);
        const as = role ?? known?.role ?? "manager";
        const id = known?.id ?? (await insertMember(tx, deskId, address, as));
        if (known !== null) await updateRole(tx, id, as);
        return makeLink(tx, id, "member.invited", by, `as a ${as}`);
      });
    },

    setRole(desk, email, role, by = ADMIN) {
      return sql.transaction(async (tx) => {
        const account = await getMember(tx, desk, email);
        refuseSelf(account, by, "change your own role");
        if (account.role === role) return { member: toMember(account), changed: false };
        await updateRole(tx, account.id, role);
        await addMemberEntry(tx, by, account, "member.role_changed", `to ${role}`);
        await requireAnotherManager(tx, account);
        return { member: { ...toMember(account), role }, changed: true };
      });
    },

    reset(desk, email, { lock = false } = {}) {
      return sql.transaction(async (tx) => {
        await activeDesk(tx, desk);
        const { id, joined_at } = await getMember(tx, desk, email);
        await endSessions(tx, "id", id);
        if (lock) await lockMember(tx, id);
        const detail = "the earlier password and passkeys stopped working at once";
        const isLocked = lock && joined_at !== null;
        return makeLink(tx, id, "member.reset", ADMIN, isLocked ? detail : undefined);
      });
    },

    remove(desk, email, by = ADMIN) {
      return sql.transaction(async (tx) => {
        const account = await getMember(tx, desk, email);
        refuseSelf(account, by, "remove yourself");
        await endSessions(tx, "id", account.id);
        await spendLinks(tx, account.id);
        await tx.run("UPDATE members SET removed_at = $1 WHERE id = $2", tx.now, account.id);
        await addMemberEntry(tx, by, account, "member.removed");
        if (by.memberId !== null) await requireAnotherManager(tx, account);
        await removeAddress(tx, by, account.desk_id, account.email);
        return { ...toMember(account), removed_at: tx.now, link_expires_at: null };
      });
    },

    async list(desk) {
      const { id } = await getDesk(sql, desk);
      const rows = await selectMembers(sql, "members.desk_id = $2 ORDER BY members.email", id);
      return rows.map((row) => toMember(toAccount(row)));
    },

    async findInvitation(token) {
      const link = await findLink(sql, token);
      const account = link === null ? null : await findAccount(sql, link.member_id);
      if (link === null || account === null) return null;
      const kind = account.joined_at === null ? "join" : "reset";
      const { passkeys_required } = account;
      return { member: toMember(account), passkeys_required, kind, expires_at: link.expires_at };
    },

    spendLink(token, { passwordHash = null, passkey = null }, client = null) {
      return sql.transaction(async (tx) => {
        const link = await findLink(tx, token);
        const account = link === null ? null : await findAccount(tx, link.member_id);
        if (account === null) return null;
        const { id } = account;
        await spendLinks(tx, id);
        await removePasskeys(tx, id);
        if (passkey !== null) await insertPasskey(tx, id, passkey);
        await tx.run(
          "UPDATE members SET password_hash = $1, joined_at = coalesce(joined_at, $2) WHERE id = $3",
          passwordHash,
          tx.now,
          id,
        );
        await endSessions(tx, "id", id);
        await addSpentEntry(tx, { memberId: id, client }, account, passkey);
        return getAccount(tx, id);
      });
    },

    setPassword(by, passwordHash) {
      const { memberId } = by;
      return sql.transaction(async (tx) => {
        const account = await getAccount(tx, memberId);
        await addMemberEntry(tx, by, account, setOrChanged(account));
        const update = "UPDATE members SET password_hash = $1 WHERE id = $2";
        await tx.run(update, passwordHash, memberId);
        await endSessions(tx, "id", memberId);
        return getAccount(tx, memberId);
      });
    },

    signOutEverywhere(by) {
      const { memberId } = by;
      return sql.transaction(async (tx) => {
        const account = await getAccount(tx, memberId);
        await addMemberEntry(tx, by, account, "member.signed_out_everywhere");
        await endSessions(tx, "id", memberId);
        return getAccount(tx, memberId);
      });
    },

    async findForSignIn(email) {
      const row = await findByEmail(sql, normalizeEmail(email));
      if (row === null) return null;
      const { desk_archived_at } = row;
      return { ...toAccount(row), password_hash: workingPassword(row), desk_archived_at };
    },

    async passwordHash(memberId) {
      const [row] = await selectMembers(sql, "members.id = $2", memberId);
      return row?.password_hash?.replace(LOCKED, "") ?? null;
    },

    find: (memberId) => findAccount(sql, memberId),
  } satisfies Members;
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

async function requireRoom(tx: Tx, desk: string, deskId: number): Promise<void> {
  const row = await tx.get<{ n: number }>(
    "SELECT count(*) AS n FROM members WHERE desk_id = $1 AND removed_at IS NULL",
    deskId,
  );
  if (row !== null && row.n < MEMBERS_MAX) return;
  throw new UserError(
    `Desk "${desk}" has ${MEMBERS_MAX} members, as many as a desk can have: remove one first.`,
  );
}

async function insertMember(
  tx: Tx,
  deskId: number,
  email: string,
  role: MemberRole,
): Promise<string> {
  const id = ulid(tx.now);
  await tx.run(
    "INSERT INTO members (id, desk_id, email, role, created_at) VALUES ($1, $2, $3, $4, $5)",
    id,
    deskId,
    email,
    role,
    tx.now,
  );
  return id;
}

async function updateRole(tx: Tx, id: string, role: MemberRole): Promise<void> {
  await tx.run("UPDATE members SET role = $1 WHERE id = $2", role, id);
}

function refuseSelf({ id }: Account, by: Author, what: string): void {
  if (id !== by.memberId) return;
  throw new UserError(`You cannot ${what}: ask another manager or an administrator to do it.`);
}

/** Throws {@link UserError} if this was the only manager who has joined: an invitation may expire unused. */
async function requireAnotherManager(
  tx: Tx,
  { id, desk_id, desk, email, role, joined_at }: Account,
): Promise<void> {
  if (role !== "manager" || joined_at === null) return;
  const other = await tx.get(
    `SELECT 1 FROM members WHERE desk_id = $1 AND id <> $2 AND role = 'manager'
       AND joined_at IS NOT NULL AND removed_at IS NULL LIMIT 1`,
    desk_id,
    id,
  );
  if (other !== null) return;
  throw new UserError(
    `${email} is the only manager of desk "${desk}" who has joined, and a desk keeps one: make another member a manager first`,
    `member role ${shellQuoted(desk)} EMAIL manager`,
  );
}

async function getMember(sql: Reader, desk: DeskRef, email: string): Promise<Account> {
  const address = checkEmail(email);
  const { id, name } = await getDesk(sql, desk);
  const row = await findByEmail(sql, address);
  if (row !== null && row.desk_id === id) return toAccount(row);
  throw new NotFoundError(
    `Desk "${name}" has no member ${address}: list its members`,
    `member list ${shellQuoted(name)}`,
  );
}

async function lockMember(tx: Tx, memberId: string): Promise<void> {
  await removePasskeys(tx, memberId);
  // The hash stays, so that the old password cannot be chosen again.
  await tx.run(
    "UPDATE members SET password_hash = '!' || ltrim(password_hash, '!') WHERE id = $1",
    memberId,
  );
}

async function makeLink(
  tx: Tx,
  memberId: string,
  action: AuditAction,
  by: Author,
  detail?: string,
): Promise<MadeLink> {
  const replaces_link = (await getAccount(tx, memberId)).link_expires_at !== null;
  const link = await insertLink(tx, memberId);
  const account = await getAccount(tx, memberId);
  await addMemberEntry(tx, by, account, action, detail);
  return { ...link, member: toMember(account), replaces_link };
}

async function addSpentEntry(
  tx: Tx,
  by: Author,
  account: Account,
  passkey: NewPasskey | null,
): Promise<void> {
  const means = passkey === null ? "with a password" : `with the passkey "${passkey.name}"`;
  if (account.joined_at === null) return addMemberEntry(tx, by, account, "member.joined", means);
  const action = passkey === null ? setOrChanged(account) : "member.passkey_added";
  const taken = passkey === null ? "passkeys" : "password and passkeys";
  const detail = `by a one-time link; earlier ${taken} were taken away`;
  return addMemberEntry(tx, by, account, action, detail);
}

function setOrChanged({ has_password }: Account): AuditAction {
  return has_password ? "member.password_changed" : "member.password_set";
}
