import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { type AuditAction, auditPhrases, describeAudit } from "../src/domain/audit.ts";
import { NotFoundError } from "../src/domain/errors.ts";
import type { NewPasskey } from "../src/domain/member.ts";
import type { MemberAuthor, NewKey, OfDesk, Rotation } from "../src/domain/storage.ts";
import { SqliteAudit } from "../src/store/sqlite/audit.ts";
import { SqliteMembers } from "../src/store/sqlite/members.ts";
import { openDatabase } from "../src/store/sqlite/open.ts";
import { SqlitePasskeys } from "../src/store/sqlite/passkeys.ts";
import { SqliteRegistry } from "../src/store/sqlite/registry.ts";
import { cli } from "./_cli.ts";
import { onCleanup, query, temporaryFolder } from "./_setup.ts";

setDefaultTimeout(60_000);

const ALICE = "alice@example.com";

function self(memberId: string): MemberAuthor {
  return { memberId, client: null };
}

/** Desks `alpha` with the member Alice and `beta` with Bob; the clock goes on with every look at it. */
function start() {
  const dataDir = temporaryFolder();
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  const time = { at: 1_000 };
  const now = () => (time.at += 1);
  const all = new SqliteRegistry(db, now);
  const registryOf = (memberId: string | null) => {
    const by = { memberId, client: null };
    return {
      createDesk: all.createDesk.bind(all),
      listKeys: all.listKeys.bind(all),
      limitKeys: all.limitKeys.bind(all),
      requirePasskeys: all.requirePasskeys.bind(all),
      mintKey: (key: NewKey) => all.mintKey(key, by),
      revokeKey: (id: string, of: OfDesk = {}) => all.revokeKey(id, of, by),
      rotateKey: (id: string, options: Rotation & OfDesk) => all.rotateKey(id, options, by),
    };
  };
  const members = new SqliteMembers(db, now);
  const join = (desk: string, email: string) => {
    registryOf(null).createDesk(desk, { ifMissing: false });
    const { token } = members.invite(desk, email);
    return members.spendWithPassword(token, "$argon2id$secret")?.id ?? "";
  };
  const alice = join("alpha", ALICE);
  const bob = join("beta", "bob@example.com");
  const passkeys = new SqlitePasskeys(db, now);
  return {
    dataDir,
    db,
    registryOf,
    members,
    passkeys,
    audit: new SqliteAudit(db, now),
    alice,
    bob,
  };
}

const noLabel = { label: null, expiresInMs: null };
const passkey: NewPasskey = {
  id: "credential",
  name: "Laptop",
  public_key: new Uint8Array([1, 2, 3]),
  counter: 0,
  transports: [],
};

/** The newest entries, as `actor action what`. */
function newest(audit: SqliteAudit, limit: number): unknown[] {
  return audit
    .list({ desk: "alpha", limit })
    .map(({ actor, action, key_id, subject, detail }) => [
      actor,
      action,
      key_id ?? subject,
      detail,
    ]);
}

function thrown(work: () => unknown): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}

describe("every change is in the audit, with who made it", () => {
  test("to desks and keys, by an admin and by a member", () => {
    const { registryOf, audit, alice } = start();
    expect(audit.list({ desk: "beta", limit: 100 }).at(-1)).toMatchObject({
      action: "desk.created",
      actor: null,
      desk: "beta",
    });
    for (const [actor, name] of [
      [null, null],
      [alice, ALICE],
    ] as const) {
      const registry = registryOf(actor);
      const { record } = registry.mintKey({ desk: "alpha", label: "bot-7", expiresInMs: null });
      expect(audit.list({ desk: "alpha", limit: 1 })).toMatchObject([
        {
          action: "key.created",
          actor: name,
          desk: "alpha",
          key_id: record.id,
          key_label: "bot-7",
          key_last4: record.last4,
          at: expect.any(Number),
        },
      ]);
      const { minted } = registry.rotateKey(record.id, { overlapMs: 1_000, expiresInMs: null });
      const successor = minted.record.id;
      expect(newest(audit, 2)).toEqual([
        [name, "key.rotated", record.id, `its successor is ${successor}`],
        [name, "key.created", successor, `successor of ${record.id}`],
      ]);
      registry.revokeKey(successor);
      expect(newest(audit, 1)).toEqual([[name, "key.revoked", successor, null]]);
    }
  });

  test("to members, by an admin", () => {
    const { members, audit } = start();
    members.invite("alpha", "carol@example.com");
    members.reset("alpha", ALICE);
    members.remove("alpha", "carol@example.com");
    expect(newest(audit, 3)).toEqual([
      [null, "member.removed", "carol@example.com", null],
      [null, "member.reset", ALICE, null],
      [null, "member.invited", "carol@example.com", null],
    ]);
  });

  test("to themselves, by members", () => {
    const { members, passkeys, audit, alice } = start();
    expect(newest(audit, 1)).toEqual([[ALICE, "member.joined", ALICE, "with a password"]]);
    passkeys.add(self(alice), passkey);
    passkeys.remove(self(alice), passkey.id);
    members.setPassword(self(alice), "another");
    members.signOutEverywhere(self(alice));
    expect(newest(audit, 4)).toEqual([
      [ALICE, "member.signed_out_everywhere", ALICE, null],
      [ALICE, "member.password_changed", ALICE, null],
      [ALICE, "member.passkey_removed", ALICE, '"Laptop"'],
      [ALICE, "member.passkey_added", ALICE, '"Laptop"'],
    ]);
    members.spendWithPassword(members.reset("alpha", ALICE).token, "third");
    members.spendWithPasskey(members.reset("alpha", ALICE).token, { ...passkey, id: "second" });
    expect(newest(audit, 3)).toMatchObject([
      [ALICE, "member.passkey_added", ALICE, expect.stringContaining("one-time link")],
      [null, "member.reset", ALICE, null],
      [ALICE, "member.password_changed", ALICE, expect.stringContaining("one-time link")],
    ]);
  });

  test("and sign-ins, which change nothing else", () => {
    const { db, audit, alice } = start();
    const { id: deskId } = new SqliteRegistry(db).listDesks()[0] ?? { id: 0 };
    audit.append({
      deskId,
      actor: alice,
      action: "member.signed_in",
      subjectId: alice,
      client: null,
    });
    audit.append({
      deskId,
      actor: null,
      action: "member.sign_in_failed",
      subjectId: alice,
      client: null,
    });
    expect(newest(audit, 2)).toEqual([
      [null, "member.sign_in_failed", ALICE, null],
      [ALICE, "member.signed_in", ALICE, null],
    ]);
  });
});

test("what changes nothing leaves no entry", () => {
  const { registryOf, members, audit } = start();
  const registry = registryOf(null);
  const { record } = registry.mintKey({ desk: "alpha", ...noLabel });
  registry.revokeKey(record.id);
  const before = audit.list({ desk: null, limit: 100 });
  registry.revokeKey(record.id);
  registry.createDesk("alpha", { ifMissing: true });
  for (const refused of [
    () => registry.createDesk("alpha", { ifMissing: false }),
    () => registry.rotateKey(record.id, { overlapMs: 0, expiresInMs: null }),
    () => members.invite("alpha", ALICE),
    () => members.invite("alpha", "bob@example.com"),
    () => members.remove("alpha", "nobody@example.com"),
  ]) {
    expect(thrown(refused)).toBeInstanceOf(Error);
  }
  members.spendWithPassword("x".repeat(43), "hash");
  expect(audit.list({ desk: null, limit: 100 })).toEqual(before);
});

test("a change whose entry cannot be written is not made", () => {
  const { db, registryOf, members, passkeys, alice } = start();
  const registry = registryOf(null);
  const { record } = registry.mintKey({ desk: "alpha", ...noLabel });
  const tables = ["desks", "api_keys", "members", "invitations", "passkeys", "audit"];
  const content = () => tables.map((table) => db.query(`SELECT * FROM ${table}`).all());
  const { token } = members.reset("alpha", ALICE);
  db.run("CREATE TEMP TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END");
  const before = content();
  for (const change of [
    () => registry.mintKey({ desk: "alpha", ...noLabel }),
    () => registry.rotateKey(record.id, { overlapMs: 0, expiresInMs: null }),
    () => registry.revokeKey(record.id),
    () => members.invite("alpha", "carol@example.com"),
    () => members.reset("alpha", ALICE),
    () => members.remove("alpha", ALICE),
    () => members.spendWithPassword(token, "hash"),
    () => members.spendWithPasskey(token, passkey),
    () => members.setPassword(self(alice), "hash"),
    () => members.signOutEverywhere(self(alice)),
    () => passkeys.add(self(alice), passkey),
  ]) {
    expect(String(thrown(change))).toContain("full");
    expect(content()).toEqual(before);
  }
});

describe("between desks", () => {
  test("another desk's key is as unknown as one that does not exist", () => {
    const { registryOf, alice, audit } = start();
    const registry = registryOf(alice);
    const { record } = registryOf(null).mintKey({ desk: "beta", ...noLabel });
    const of = { desk: "alpha" };
    const entries = audit.list({ desk: null, limit: 100 });
    const answers = [record.id, record.id.toLowerCase(), "01K5QZ8F3V9X2M7T4B6N1C0D8E", "x"].flatMap(
      (id) =>
        [
          () => registry.revokeKey(id, of),
          () => registry.rotateKey(id, { overlapMs: 0, expiresInMs: null, ...of }),
        ].map((work) => {
          const error = thrown(work);
          expect(error).toBeInstanceOf(NotFoundError);
          return String(error);
        }),
    );
    expect(new Set(answers).size).toBe(1);
    expect(registry.listKeys("beta")).toEqual([record]);
    expect(registry.listKeys("alpha")).toEqual([]);
    expect(audit.list({ desk: null, limit: 100 })).toEqual(entries);
    expect(registryOf(null).revokeKey(record.id, { desk: "beta" }).changed).toBe(true);
  });

  test("a member cannot change anything of another desk, even where nobody asked for whose it is", () => {
    const { registryOf, alice, dataDir } = start();
    const { record } = registryOf(null).mintKey({ desk: "beta", ...noLabel });
    const keys = () => query(dataDir, "SELECT * FROM api_keys");
    const before = keys();
    const registry = registryOf(alice);
    for (const change of [
      () => registry.revokeKey(record.id),
      () => registry.rotateKey(record.id, { overlapMs: 0, expiresInMs: null }),
      () => registry.mintKey({ desk: "beta", ...noLabel }),
    ]) {
      expect(thrown(change)).toBeInstanceOf(NotFoundError);
    }
    expect(keys()).toEqual(before);
    expect(query(dataDir, "SELECT id FROM desks")).toHaveLength(2);
  });

  test("a member who was removed meanwhile changes nothing any more", () => {
    const { registryOf, members, alice } = start();
    members.remove("alpha", ALICE);
    const registry = registryOf(alice);
    expect(thrown(() => registry.mintKey({ desk: "alpha", ...noLabel }))).toBeInstanceOf(
      NotFoundError,
    );
    expect(registry.listKeys("alpha")).toEqual([]);
  });

  test("an entry is listed with its own desk alone, page by page", () => {
    const { audit, members } = start();
    for (let count = 0; count < 5; count++) members.invite("alpha", `m${count}@example.com`);
    const all = audit.list({ desk: null, limit: 100 });
    const ids = all.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted((one, other) => other - one));
    expect(new Set(all.map(({ desk }) => desk))).toEqual(new Set(["alpha", "beta"]));
    for (const desk of ["alpha", "beta"]) {
      const whole = all.filter((entry) => entry.desk === desk);
      const paged = [];
      for (let before: number | null = null; ;) {
        const page = audit.list({ desk, before, limit: 3 });
        paged.push(...page);
        if (page.length < 3) break;
        before = page.at(-1)?.id ?? null;
      }
      expect(paged).toEqual(whole);
    }
    expect(String(thrown(() => audit.list({ desk: "gamma", limit: 1 })))).toContain("no desk");
  });
});

test("nothing secret is in it", () => {
  const { dataDir, registryOf, members, passkeys, audit, alice } = start();
  const registry = registryOf(alice);
  const first = registry.mintKey({ desk: "alpha", ...noLabel });
  const { minted } = registry.rotateKey(first.record.id, { overlapMs: 1, expiresInMs: null });
  registry.mintKey({ desk: "alpha", label: first.key.slice(0, 60), expiresInMs: null });
  passkeys.add(self(alice), { ...passkey, name: first.key });
  const { token } = members.reset("alpha", ALICE);
  members.spendWithPassword(token, "$argon2id$secret");
  const text = JSON.stringify(query(dataDir, "SELECT * FROM audit"));
  const shown = audit
    .list({ desk: null, limit: 100 })
    .map((record) => record.detail)
    .join();
  for (const secret of [first.key, minted.key, token, "argon2id", passkey.id]) {
    expect(text).not.toContain(secret);
    expect(shown).not.toContain(secret);
  }
  expect(text).toContain("sbk_…");
});

test("entries are never changed: every action adds to those that were there", () => {
  const { dataDir, registryOf, members, alice } = start();
  const rows = () => query(dataDir, "SELECT * FROM audit ORDER BY id");
  const before = rows();
  members.setPassword(self(alice), "hash");
  registryOf(alice).mintKey({ desk: "alpha", ...noLabel });
  members.remove("alpha", ALICE);
  const after = rows();
  expect(after.slice(0, before.length)).toEqual(before);
  expect(after).toHaveLength(before.length + 3);
});

test("each action has a phrase of its own", () => {
  const phrases = Object.values(auditPhrases);
  expect(new Set(phrases).size).toBe(phrases.length);
  expect(phrases).toHaveLength(19);
});

describe("in words", () => {
  const record = {
    id: 1,
    at: 0,
    desk: "alpha",
    action: "key.revoked" as AuditAction,
    actor: ALICE,
    key_id: "01K5QZ8F3V9X2M7T4B6N1C0D8E",
    key_label: "bot-7",
    key_last4: "4f2a",
    subject: null,
    detail: null,
    client: null,
  };
  test("an entry says what was done to what", () => {
    expect(describeAudit(record)).toBe('revoked the key "bot-7" (…4f2a)');
    expect(describeAudit({ ...record, key_label: null, detail: "why" })).toBe(
      "revoked the key (…4f2a): why",
    );
    const noKey = { ...record, key_id: null, key_label: null, key_last4: null };
    expect(describeAudit({ ...noKey, action: "member.invited", actor: null, subject: ALICE })).toBe(
      `invited ${ALICE}`,
    );
    expect(describeAudit({ ...noKey, action: "member.signed_in", subject: ALICE })).toBe(
      "signed in",
    );
  });
});

describe("on the command line", () => {
  test("is listed newest first, of all desks or of one", async () => {
    const dataDir = temporaryFolder();
    openDatabase(dataDir, "command").close();
    const run = (...args: string[]) => cli([...args, "--data", dataDir]);
    const empty = await run("audit");
    expect(empty).toMatchObject({ code: 0, stdout: "" });
    expect(empty.stderr).toContain("Nothing");
    for (const desk of ["alpha", "beta"]) await run("desk", "create", desk);
    const { id } = JSON.parse((await run("key", "mint", "--desk", "alpha", "--json")).stdout) as {
      id: string;
    };
    await run("key", "revoke", id);
    const lines = (await run("audit")).stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^TIME +DESK +WHO +FROM +WHAT$/);
    expect(lines.slice(1).map((line) => line.split(/\s{2,}/).slice(1))).toEqual([
      ["alpha", "admin", "-", expect.stringMatching(/^revoked the key \(…[0-9a-f]{4}\)$/)],
      ["alpha", "admin", "-", expect.stringMatching(/^created the key /)],
      ["beta", "admin", "-", "created the desk"],
      ["alpha", "admin", "-", "created the desk"],
    ]);
    const limited = JSON.parse(
      (await run("audit", "--desk", "alpha", "--limit", "2", "--json")).stdout,
    ) as object[];
    expect(limited).toMatchObject([
      { action: "key.revoked", key_id: id, actor: null },
      { action: "key.created", key_id: id },
    ]);
    expect(limited).toHaveLength(2);
  });

  test("what is wrong is said with what to type", async () => {
    const dataDir = temporaryFolder();
    await cli(["desk", "create", "alpha", "--data", dataDir]);
    const unknown = await cli(["audit", "--desk", "alpa", "--data", dataDir]);
    expect(unknown).toMatchObject({ code: 1, stdout: "" });
    expect(unknown.stderr).toContain('the nearest name is "alpha"');
    for (const limit of ["0", "-1", "many"]) {
      const refused = await cli(["audit", "--limit", limit, "--data", dataDir]);
      expect(refused).toMatchObject({ code: 2, stdout: "" });
      expect(refused.stderr).toContain("1 or more");
    }
  });
});
