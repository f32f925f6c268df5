/** The audit. */
import { expect, test } from "bun:test";
import {
  actionsAbout,
  type AuditAction,
  type AuditPage,
  auditPhrases,
  auditTopics,
  BY_ADMIN,
} from "../../src/domain/audit/audit.ts";
import { NotFoundError, SignedOutError, UserError } from "../../src/lib/errors.ts";
import { ADMIN, type Author } from "../../src/domain/storage/author.ts";
import { ALICE, BOB, failure, passkey, reason, START, start, UNKNOWN_ID, what } from "./start.ts";

export function auditTests(): void {
  test("has each change to desks and keys, with its author and their address", async () => {
    const started = await start();
    const { registry, audit, mint, join } = started;
    const { memberId } = await join();
    for (const [by, actor] of [
      [ADMIN, null],
      [{ memberId, client: "192.0.2.1" }, ALICE],
    ] as const) {
      const { record } = await mint({ label: "bot-7" }, by);
      expect(await audit.list({ desk: "alpha", limit: 1 })).toMatchObject([
        {
          action: "key.created",
          actor,
          client: by.client,
          desk: "alpha",
          key_id: record.id,
          key_label: "bot-7",
          key_last4: record.last4,
          at: START,
        },
      ]);
      const { minted } = await registry.rotateKey(record.id, { overlapMs: 1_000 }, by);
      const successor = minted.record.id;
      await registry.revokeKey(successor, {}, by);
      expect(await what(started, 3)).toEqual([
        [actor, "key.revoked", successor, null],
        [actor, "key.rotated", record.id, `its successor is ${successor}`],
        [actor, "key.created", successor, `successor of ${record.id}`],
      ]);
      const creators = await audit.creatorsOf("alpha", [record.id, successor, UNKNOWN_ID]);
      expect(creators).toEqual(
        new Map([
          [record.id, actor],
          [successor, actor],
        ]),
      );
      expect((await audit.creatorsOf("beta", [record.id])).size).toBe(0);
      const history = await audit.list({ desk: "alpha", key: record.id, limit: 9 });
      expect(history.map(({ action }) => action)).toEqual(["key.rotated", "key.created"]);
    }
    await registry.limitKeys("alpha", 9);
    await registry.requirePasskeys("alpha", true);
    expect(await what(started, 2)).toEqual([
      [null, "desk.passkeys_required", null, null],
      [null, "desk.keys_limited", null, "to 9"],
    ]);
    expect((await what(started, 99, "beta")).at(-1)).toEqual([null, "desk.created", null, null]);
  });

  test("has each change to members, by administrators and by themselves", async () => {
    const started = await start();
    const { members, passkeys, audit, alpha, join } = started;
    const alice = await join();
    expect(await what(started, 1)).toEqual([[ALICE, "member.joined", ALICE, "with a password"]]);
    await members.invite("alpha", BOB, ADMIN, { role: "viewer" });
    await members.setRole("alpha", BOB, "manager", ADMIN);
    await members.remove("alpha", BOB, ADMIN);
    await passkeys.add(alice, passkey("one"));
    await passkeys.remove(alice, "one");
    await members.setPassword(alice, "another");
    await members.signOutEverywhere(alice);
    await members.spendLink(
      (await members.reset("alpha", ALICE)).token,
      { passwordHash: "third" },
      null,
    );
    const { token } = await members.reset("alpha", ALICE);
    await members.spendLink(token, { passkey: passkey("two") }, "192.0.2.1");
    const signedIn = { action: "member.signed_in", subjectId: alice.memberId } as const;
    const { memberId: actor } = alice;
    await audit.append({ deskId: alpha.deskId, actor, client: "192.0.2.2", ...signedIn });
    const byLink = expect.stringContaining("by a one-time link") as string;
    expect(await what(started, 12)).toEqual([
      [ALICE, "member.signed_in", ALICE, null],
      [ALICE, "member.passkey_added", ALICE, byLink],
      [null, "member.reset", ALICE, null],
      [ALICE, "member.password_changed", ALICE, byLink],
      [null, "member.reset", ALICE, null],
      [ALICE, "member.signed_out_everywhere", ALICE, null],
      [ALICE, "member.password_changed", ALICE, null],
      [ALICE, "member.passkey_removed", ALICE, '"Key one"'],
      [ALICE, "member.passkey_added", ALICE, '"Key one"'],
      [null, "member.removed", BOB, null],
      [null, "member.role_changed", BOB, "to manager"],
      [null, "member.invited", BOB, "as a viewer"],
    ]);
    const [first, second] = await audit.list({ desk: "alpha", limit: 2 });
    expect([first?.client, second?.client]).toEqual(["192.0.2.2", "192.0.2.1"]);
  });

  test("names an administrator by the operating system's user, and nobody else", async () => {
    const { registry, audit, alpha, join } = await start();
    const alice = await join();
    const label = async (text: string, by: Author) => {
      await registry.relabelKey(alpha.keyId, text, {}, by);
      return (await audit.list({ desk: "alpha", limit: 1 }))[0]?.os_user;
    };
    const user = Bun.spawnSync(["id", "-un"]).stdout.toString().trim();
    expect(await label("one", ADMIN)).toStartWith(user);
    expect(await label("two", { ...alice, client: "192.0.2.1" })).toBeNull();
    const stranger = { actor: null, client: "192.0.2.1", action: "member.sign_in_failed" } as const;
    await audit.append({ deskId: alpha.deskId, ...stranger });
    expect(await audit.list({ desk: "alpha", limit: 1 })).toMatchObject([{ os_user: null }]);
  });

  test("has no entry for what changed nothing or was refused, and loses none", async () => {
    const { registry, members, audit, alpha, join } = await start();
    await join();
    await join(BOB, "beta");
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    const before = await audit.list({ desk: null, limit: 100 });
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    await registry.createDesk("alpha", { ifMissing: true });
    for (const refused of [
      () => registry.createDesk("alpha", { ifMissing: false }),
      () => registry.rotateKey(alpha.keyId, { overlapMs: 0 }, ADMIN),
      () => members.invite("alpha", ALICE, ADMIN),
      () => members.invite("alpha", BOB, ADMIN),
      () => members.remove("alpha", "nobody@example.com", ADMIN),
    ]) {
      expect(await failure(refused)).toBeInstanceOf(UserError);
    }
    expect(await audit.list({ desk: null, limit: 100 })).toEqual(before);
    await members.remove("alpha", ALICE, ADMIN);
    expect((await audit.list({ desk: null, limit: 100 })).slice(1)).toEqual(before);
  });

  test("is paged per desk, newest first", async () => {
    const { audit, members } = await start();
    for (let count = 0; count < 5; count += 1) {
      await members.invite("alpha", `m${count}@example.com`, ADMIN);
    }
    const all = await audit.list({ desk: null, limit: 100 });
    const ids = all.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted((one, other) => other - one));
    for (const desk of ["alpha", "beta"]) {
      const paged = [];
      for (let before: number | null = null; ;) {
        const page: typeof all = await audit.list({ desk, before, limit: 3 });
        paged.push(...page);
        if (page.length < 3) break;
        before = page.at(-1)?.id ?? null;
      }
      expect(paged).toEqual(all.filter((entry) => entry.desk === desk));
    }
  });

  test("can be filtered by subject and by author", async () => {
    const { audit, members, alpha, join } = await start();
    const { memberId: actor } = await join();
    await members.invite("alpha", BOB, { memberId: actor, client: "192.0.2.1" });
    const entry = { deskId: alpha.deskId, client: "192.0.2.1", subjectId: actor } as const;
    await audit.append({ ...entry, actor, action: "member.signed_in" });
    await audit.append({ ...entry, actor: null, action: "member.sign_in_failed" });
    const found = async (filter: Partial<AuditPage>) =>
      (await audit.list({ desk: "alpha", limit: 9, ...filter })).map(({ action }) => action);
    const [failed, signedIn] = ["member.sign_in_failed", "member.signed_in"] as const;
    const [invited, joined] = ["member.invited", "member.joined"] as const;
    const byAdmins = ["member.invited", "key.created", "desk.created"] as const;
    expect(await found({})).toEqual([failed, signedIn, invited, joined, ...byAdmins]);
    expect(await found({ about: "sign-ins" })).toEqual([failed, signedIn]);
    expect(await found({ about: "members" })).toEqual([invited, joined, invited]);
    expect(await found({ about: "keys" })).toEqual(["key.created"]);
    expect(await found({ about: "desk" })).toEqual(["desk.created"]);
    expect(await found({ by: ALICE })).toEqual([signedIn, invited, joined]);
    expect(await found({ by: BY_ADMIN })).toEqual([...byAdmins]);
    expect(await found({ by: BY_ADMIN, about: "members" })).toEqual([invited]);
    expect(await found({ by: "nobody@example.com" })).toEqual([]);
    expect(await found({ by: ALICE, limit: 1 })).toEqual([signedIn]);
  });

  test("every action is about one thing", () => {
    const actions = auditTopics.flatMap(actionsAbout);
    expect(actions.toSorted()).toEqual(Object.keys(auditPhrases).toSorted() as AuditAction[]);
  });

  test("another desk's key is as unknown as one that does not exist", async () => {
    const { registry, beta } = await start();
    const before = await registry.listKeys("beta");
    const of = { desk: "alpha" };
    const answers = [];
    for (const id of [beta.keyId, beta.keyId.toLowerCase(), UNKNOWN_ID, "x"]) {
      for (const work of [
        () => registry.revokeKey(id, of, ADMIN),
        () => registry.rotateKey(id, { overlapMs: 0, ...of }, ADMIN),
        () => registry.relabelKey(id, "label", of, ADMIN),
      ]) {
        const error = await failure(work);
        expect(error).toBeInstanceOf(NotFoundError);
        answers.push(String(error));
      }
      expect(await registry.findKey(id, of)).toBeNull();
    }
    expect(new Set(answers).size).toBe(1);
    expect(await registry.listKeys("beta")).toEqual(before);
  });

  test("a member cannot change another desk, nor anything after removal or signing out everywhere", async () => {
    const { registry, members, passkeys, audit, mint, alpha, beta, join } = await start();
    const alice = await join();
    const bob = await join(BOB);
    await passkeys.add(bob, passkey("one"));
    const account = await members.signOutEverywhere(bob);
    const late = { ...bob, signedOutAt: account.signed_out_at - 1 };
    await members.remove("alpha", ALICE, ADMIN);
    const keys = await registry.listKeys(null);
    const entries = await audit.list({ desk: null, limit: 100 });
    for (const [by, keyId, desk, error] of [
      [bob, beta.keyId, "beta", NotFoundError],
      [alice, alpha.keyId, "alpha", NotFoundError],
      [late, alpha.keyId, "alpha", SignedOutError],
    ] as const) {
      for (const change of [
        () => mint({ desk }, by),
        () => registry.rotateKey(keyId, { overlapMs: 0 }, by),
        () => registry.revokeKey(keyId, {}, by),
        () => registry.relabelKey(keyId, "label", {}, by),
      ]) {
        expect(await failure(change)).toBeInstanceOf(error);
      }
    }
    for (const change of [
      () => members.setPassword(late, "hash"),
      () => members.signOutEverywhere(late),
      () => passkeys.add(late, passkey("two")),
      () => passkeys.remove(late, "one"),
    ]) {
      expect(await failure(change)).toBeInstanceOf(SignedOutError);
    }
    expect(await registry.listKeys(null)).toEqual(keys);
    expect(await audit.list({ desk: null, limit: 100 })).toEqual(entries);
    expect(await members.find(bob.memberId)).toEqual(account);
    const now = { ...bob, signedOutAt: account.signed_out_at };
    await registry.revokeKey(alpha.keyId, {}, now);
  });

  test("has nothing secret in it", async () => {
    const { registry, members, passkeys, audit, mint, join } = await start();
    const alice = await join();
    const { key, record } = await mint({}, alice);
    for (const refused of [
      () => mint({ label: key }, alice),
      () => registry.relabelKey(record.id, `bot ${key}`, {}, alice),
      () => passkeys.add(alice, { ...passkey("credential"), name: key }),
      () => members.invite("alpha", `${key}@example.com`, alice),
    ]) {
      expect(await reason(refused)).toContain("must not contain an API key");
    }
    const partOfKey = key.slice(0, 63);
    await registry.renameDesk("alpha", partOfKey);
    await registry.renameDesk(partOfKey, "alpha");
    await passkeys.add(alice, { ...passkey("credential"), name: "Laptop" });
    const { token } = await members.reset("alpha", ALICE);
    await members.spendLink(token, { passwordHash: "$argon2id$secret" }, null);
    const text = JSON.stringify(await audit.list({ desk: null, limit: 100 }));
    for (const secret of [partOfKey, token, "argon2id", "credential"]) {
      expect(text).not.toContain(secret);
    }
    expect(text).toContain("sbk_…");
  });

  test("is read from an entry on, of all desks, the oldest first", async () => {
    const { audit, mint, registry, alpha } = await start();
    const from = await audit.newestId();
    await mint({ desk: "beta" });
    await registry.relabelKey(alpha.keyId, "bot", {}, ADMIN);
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    await mint({ desk: null, scope: "read" });
    const read = async (after: number, limit = 9) =>
      audit.listSince({ after, actions: ["key.created", "key.revoked"], limit });
    const found = await read(from);
    expect(found.map(({ desk, action }) => [desk, action])).toEqual([
      ["beta", "key.created"],
      ["alpha", "key.revoked"],
      [null, "key.created"],
    ]);
    expect(await audit.newestId()).toBe(found[2]?.id ?? 0);
    expect(await read(found[0]?.id ?? 0, 1)).toEqual([found[1]].flatMap((one) => one ?? []));
    expect(await read(found[2]?.id ?? 0)).toEqual([]);
  });
}
