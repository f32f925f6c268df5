/** The audit: who did what to desks, keys and members. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { auditPhrases, type AuditRecord, describeAudit } from "../src/domain/audit.ts";
import { NotFoundError } from "../src/domain/errors.ts";
import type { NewPasskey } from "../src/domain/member.ts";
import { ADMIN } from "../src/domain/storage.ts";
import { SqliteAudit } from "../src/store/sqlite/audit.ts";
import { SqliteMembers } from "../src/store/sqlite/members.ts";
import { openDatabase } from "../src/store/sqlite/open.ts";
import { SqlitePasskeys } from "../src/store/sqlite/passkeys.ts";
import { SqliteRegistry } from "../src/store/sqlite/registry.ts";
import { cli } from "./_cli.ts";
import { onCleanup, query, temporaryFolder } from "./_setup.ts";

setDefaultTimeout(60_000);

const ALICE = "alice@example.com";
const KEY = { desk: "alpha", label: null, expiresInMs: null };
const BETA_KEY = { ...KEY, desk: "beta" };
const ROTATION = { overlapMs: 1_000, expiresInMs: null };
const PASSKEY: NewPasskey = {
  id: "credential",
  name: "Laptop",
  public_key: new Uint8Array([1, 2, 3]),
  counter: 0,
  transports: [],
};

/** Desks `alpha`, with the member Alice, and `beta`, with Bob; the clock advances at every look. */
function start() {
  const dataDir = temporaryFolder();
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  let time = 1_000;
  const now = () => (time += 1);
  const registry = new SqliteRegistry(db, now);
  const members = new SqliteMembers(db, now);
  const passkeys = new SqlitePasskeys(db, now);
  const audit = new SqliteAudit(db, now);
  const join = (desk: string, email: string) => {
    registry.createDesk(desk, { ifMissing: false });
    const { token } = members.invite(desk, email);
    return members.spendWithPassword(token, "$argon2id$secret")?.id ?? "";
  };
  const alice = { memberId: join("alpha", ALICE), client: null };
  join("beta", "bob@example.com");
  /** The newest entries of alpha: actor, action, key or member, detail. */
  const newest = (limit: number) =>
    audit
      .list({ desk: "alpha", limit })
      .map(({ actor, action, key_id, subject, detail }) => [
        actor,
        action,
        key_id ?? subject,
        detail,
      ]);
  const all = () => audit.list({ desk: null, limit: 100 });
  return { dataDir, db, registry, members, passkeys, audit, alice, newest, all };
}

function thrown(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

describe("every change is in the audit, with its author", () => {
  test("of desks and keys, by an admin and by a member", () => {
    const { registry, audit, alice, newest } = start();
    expect(audit.list({ desk: "beta", limit: 100 }).at(-1)).toMatchObject({
      action: "desk.created",
      actor: null,
      desk: "beta",
    });
    for (const [by, name] of [
      [ADMIN, null],
      [alice, ALICE],
    ] as const) {
      const { record } = registry.mintKey({ ...KEY, label: "bot-7" }, by);
      expect(audit.list({ desk: "alpha", limit: 1 })).toMatchObject([
        {
          action: "key.created",
          actor: name,
          key_id: record.id,
          key_label: "bot-7",
          key_last4: record.last4,
          at: expect.any(Number),
        },
      ]);
      const { id } = registry.rotateKey(record.id, ROTATION, by).minted.record;
      registry.revokeKey(id, {}, by);
      expect(newest(3)).toEqual([
        [name, "key.revoked", id, null],
        [name, "key.rotated", record.id, `its successor is ${id}`],
        [name, "key.created", id, `successor of ${record.id}`],
      ]);
    }
  });

  test("of members, by an admin and by themselves", () => {
    const { members, passkeys, alice, newest } = start();
    expect(newest(1)).toEqual([[ALICE, "member.joined", ALICE, "with a password"]]);
    members.invite("alpha", "carol@example.com");
    members.remove("alpha", "carol@example.com");
    passkeys.add(alice, PASSKEY);
    passkeys.remove(alice, PASSKEY.id);
    members.setPassword(alice, "another");
    members.signOutEverywhere(alice);
    members.spendWithPassword(members.reset("alpha", ALICE).token, "third");
    members.spendWithPasskey(members.reset("alpha", ALICE).token, { ...PASSKEY, id: "second" });
    const byLink = expect.stringContaining("one-time link");
    expect(newest(10).toReversed()).toEqual([
      [null, "member.invited", "carol@example.com", null],
      [null, "member.removed", "carol@example.com", null],
      [ALICE, "member.passkey_added", ALICE, '"Laptop"'],
      [ALICE, "member.passkey_removed", ALICE, '"Laptop"'],
      [ALICE, "member.password_changed", ALICE, null],
      [ALICE, "member.signed_out_everywhere", ALICE, null],
      [null, "member.reset", ALICE, null],
      [ALICE, "member.password_changed", ALICE, byLink],
      [null, "member.reset", ALICE, null],
      [ALICE, "member.passkey_added", ALICE, byLink],
    ]);
  });

  test("and sign-ins, by their ids", () => {
    const { registry, audit, alice, newest } = start();
    const [desk] = registry.listDesks();
    const signIn = { deskId: desk?.id ?? 0, subjectId: alice.memberId, client: null };
    audit.append({ ...signIn, actor: alice.memberId, action: "member.signed_in" });
    audit.append({ ...signIn, actor: null, action: "member.sign_in_failed" });
    expect(newest(2)).toEqual([
      [null, "member.sign_in_failed", ALICE, null],
      [ALICE, "member.signed_in", ALICE, null],
    ]);
  });
});

test("a call that changes nothing leaves no entry", () => {
  const { registry, members, all } = start();
  const { id } = registry.mintKey(KEY, ADMIN).record;
  registry.revokeKey(id, {}, ADMIN);
  const before = all();
  registry.revokeKey(id, {}, ADMIN);
  registry.createDesk("alpha", { ifMissing: true });
  members.spendWithPassword("x".repeat(43), "hash");
  for (const refused of [
    () => registry.createDesk("alpha", { ifMissing: false }),
    () => registry.rotateKey(id, ROTATION, ADMIN),
    () => members.invite("alpha", ALICE),
    () => members.invite("alpha", "bob@example.com"),
    () => members.remove("alpha", "nobody@example.com"),
  ]) {
    expect(thrown(refused)).toBeInstanceOf(Error);
  }
  expect(all()).toEqual(before);
});

test("a change whose entry cannot be written is not made", () => {
  const { db, registry, members, passkeys, alice } = start();
  const { id } = registry.mintKey(KEY, ADMIN).record;
  const tables = ["desks", "api_keys", "members", "invitations", "passkeys", "audit"];
  const content = () => tables.map((table) => db.query(`SELECT * FROM ${table}`).all());
  const { token } = members.reset("alpha", ALICE);
  db.run("CREATE TEMP TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END");
  const before = content();
  for (const change of [
    () => registry.createDesk("gamma", { ifMissing: false }),
    () => registry.mintKey(KEY, ADMIN),
    () => registry.rotateKey(id, ROTATION, ADMIN),
    () => registry.revokeKey(id, {}, ADMIN),
    () => members.invite("alpha", "carol@example.com"),
    () => members.reset("alpha", ALICE),
    () => members.remove("alpha", ALICE),
    () => members.spendWithPassword(token, "hash"),
    () => members.spendWithPasskey(token, PASSKEY),
    () => members.setPassword(alice, "hash"),
    () => members.signOutEverywhere(alice),
    () => passkeys.add(alice, PASSKEY),
  ]) {
    expect(String(thrown(change))).toContain("full");
    expect(content()).toEqual(before);
  }
});

describe("between desks", () => {
  test("another desk's key is as unknown as one that does not exist, and stays as it is", () => {
    const { registry, alice, all } = start();
    const { record } = registry.mintKey(BETA_KEY, ADMIN);
    const entries = all();
    const messages = [record.id, record.id.toLowerCase(), "01K5QZ8F3V9X2M7T4B6N1C0D8E", "x"]
      .flatMap((id) => [
        () => registry.revokeKey(id, { desk: "alpha" }, alice),
        () => registry.rotateKey(id, { ...ROTATION, desk: "alpha" }, alice),
      ])
      .map((change) => {
        const error = thrown(change);
        expect(error).toBeInstanceOf(NotFoundError);
        return String(error);
      });
    expect(new Set(messages).size).toBe(1);
    expect(registry.listKeys(null)).toEqual([record]);
    expect(all()).toEqual(entries);
    expect(registry.revokeKey(record.id, { desk: "beta" }, ADMIN).changed).toBe(true);
  });

  test("a member can change nothing of another desk, even if no desk is named", () => {
    const { registry, alice } = start();
    const { record } = registry.mintKey(BETA_KEY, ADMIN);
    for (const change of [
      () => registry.revokeKey(record.id, {}, alice),
      () => registry.rotateKey(record.id, ROTATION, alice),
      () => registry.mintKey(BETA_KEY, alice),
    ]) {
      expect(thrown(change)).toBeInstanceOf(NotFoundError);
    }
    expect(registry.listKeys(null)).toEqual([record]);
  });

  test("a removed member can change nothing", () => {
    const { registry, members, alice } = start();
    members.remove("alpha", ALICE);
    expect(thrown(() => registry.mintKey(KEY, alice))).toBeInstanceOf(NotFoundError);
    expect(registry.listKeys("alpha")).toEqual([]);
  });

  test("each desk's entries are listed by themselves, newest first, page by page", () => {
    const { audit, members, all } = start();
    for (let count = 0; count < 5; count++) members.invite("alpha", `m${count}@example.com`);
    const ids = all().map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted((one, other) => other - one));
    for (const desk of ["alpha", "beta"]) {
      const paged: AuditRecord[] = [];
      let page: AuditRecord[];
      do {
        page = audit.list({ desk, before: paged.at(-1)?.id ?? null, limit: 3 });
        paged.push(...page);
      } while (page.length === 3);
      expect(paged).toEqual(all().filter((entry) => entry.desk === desk));
      expect(paged.length).toBeGreaterThan(2);
    }
    expect(String(thrown(() => audit.list({ desk: "gamma", limit: 1 })))).toContain("no desk");
  });
});

test("entries contain no secret, and are never changed", () => {
  const { dataDir, registry, members, passkeys, alice, all } = start();
  const rows = () => query(dataDir, "SELECT * FROM audit ORDER BY id");
  const before = rows();
  const first = registry.mintKey(KEY, alice);
  const { minted } = registry.rotateKey(first.record.id, ROTATION, alice);
  registry.mintKey({ ...KEY, label: first.key.slice(0, 60) }, alice);
  passkeys.add(alice, { ...PASSKEY, name: first.key });
  const { token } = members.reset("alpha", ALICE);
  members.spendWithPassword(token, "$argon2id$secret");
  const text = JSON.stringify([rows(), all()]);
  for (const secret of [first.key, minted.key, token, "argon2id", PASSKEY.id]) {
    expect(text).not.toContain(secret);
  }
  expect(text).toContain("sbk_…");
  members.remove("alpha", ALICE);
  expect(rows().slice(0, before.length)).toEqual(before);
});

describe("in words", () => {
  test("each action has its own phrase", () => {
    const phrases = Object.values(auditPhrases);
    expect(new Set(phrases).size).toBe(phrases.length);
    expect(phrases).toHaveLength(19);
  });

  const noKey = { key_id: null, key_label: null, key_last4: null };
  test.each<[Partial<AuditRecord>, string]>([
    [{}, 'revoked the key "bot-7" (…4f2a)'],
    [{ key_label: null, detail: "why" }, "revoked the key (…4f2a): why"],
    [{ ...noKey, action: "member.invited", subject: ALICE, actor: null }, `invited ${ALICE}`],
    [{ ...noKey, action: "member.signed_in", subject: ALICE }, "signed in"],
  ])("%o is described", (entry, description) => {
    const record: AuditRecord = {
      id: 1,
      at: 0,
      desk: "alpha",
      action: "key.revoked",
      actor: ALICE,
      key_id: "01K5QZ8F3V9X2M7T4B6N1C0D8E",
      key_label: "bot-7",
      key_last4: "4f2a",
      subject: null,
      detail: null,
      client: null,
    };
    expect(describeAudit({ ...record, ...entry })).toBe(description);
  });
});

test("the command lists entries newest first, of all desks or of one", async () => {
  const dataDir = temporaryFolder();
  openDatabase(dataDir, "command").close();
  const run = (...args: string[]) => cli([...args, "--data", dataDir]);
  const empty = await run("audit");
  expect(empty).toMatchObject({ code: 0, stdout: "" });
  expect(empty.stderr).toContain("Nothing");
  for (const desk of ["alpha", "beta"]) await run("desk", "create", desk);
  const minted = await run("key", "mint", "--desk", "alpha", "--json");
  const { id } = JSON.parse(minted.stdout) as { id: string };
  await run("key", "revoke", id);
  const [heading, ...lines] = (await run("audit")).stdout.trimEnd().split("\n");
  expect(heading).toMatch(/^TIME +DESK +WHO +FROM +WHAT$/);
  expect(lines.map((line) => line.split(/\s{2,}/).slice(1))).toEqual([
    ["alpha", "admin", "-", expect.stringMatching(/^revoked the key \(…[0-9a-f]{4}\)$/)],
    ["alpha", "admin", "-", expect.stringMatching(/^created the key /)],
    ["beta", "admin", "-", "created the desk"],
    ["alpha", "admin", "-", "created the desk"],
  ]);
  const limited = await run("audit", "--desk", "alpha", "--limit", "2", "--json");
  const records = JSON.parse(limited.stdout) as object[];
  expect(records).toHaveLength(2);
  expect(records).toMatchObject([
    { action: "key.revoked", key_id: id, actor: null },
    { action: "key.created", key_id: id },
  ]);
});
