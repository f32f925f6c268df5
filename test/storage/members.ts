/** Invitations and members. */
import { expect, test } from "bun:test";
import { NotFoundError, UserError } from "../../src/lib/errors.ts";
import { LINK_LIFETIME_MS, type MemberRole, MEMBERS_MAX } from "../../src/domain/member/member.ts";
import { ADMIN, type Author } from "../../src/domain/storage/author.ts";
import { MINUTE_MS } from "../../src/lib/text/time.ts";
import { ALICE, BOB, failure, passkey, reason, START, start, type Started, what } from "./start.ts";

export function membersTests(): void {
  test("an invitation lets its member in once", async () => {
    const { members, time } = await start();
    const { token, member, expires_at } = await members.invite("alpha", "Alice@Example.com", ADMIN);
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(expires_at).toBe(time.at + LINK_LIFETIME_MS);
    expect(member).toEqual({
      id: member.id,
      desk: "alpha",
      email: ALICE,
      role: "manager",
      created_at: time.at,
      joined_at: null,
      removed_at: null,
      signed_in_at: null,
      has_password: false,
      passkeys: 0,
      link_expires_at: expires_at,
    });
    const invitation = { member, passkeys_required: false, kind: "join" as const, expires_at };
    expect(await members.findInvitation(token)).toEqual(invitation);
    time.at += 5;
    const spends = await Promise.all(
      Array.from({ length: 8 }, async (_, index) =>
        members.spendLink(token, { passwordHash: `hash ${index}` }, null),
      ),
    );
    expect(spends.filter((account) => account !== null)).toHaveLength(1);
    expect(await members.findInvitation(token)).toBeNull();
    const winner = spends.findIndex((account) => account !== null);
    expect(await members.findForSignIn("ALICE@example.com")).toMatchObject({
      id: member.id,
      desk: "alpha",
      password_hash: `hash ${winner}`,
      joined_at: time.at,
      link_expires_at: null,
    });
  });

  const noLinks: [name: string, open: (started: Started) => Promise<string>][] = [
    [
      "expired",
      async ({ members, time }) => {
        const { token } = await members.invite("alpha", ALICE, ADMIN);
        time.at += LINK_LIFETIME_MS - 1;
        expect(await members.findInvitation(token)).not.toBeNull();
        time.at += 1;
        return token;
      },
    ],
    [
      "replaced by a later one",
      async ({ members }) => {
        const first = await members.invite("alpha", ALICE, ADMIN);
        const second = await members.invite("alpha", ALICE, ADMIN);
        expect(second).toMatchObject({ replaces_link: true, member: { id: first.member.id } });
        return first.token;
      },
    ],
    [
      "of a removed member",
      async ({ members }) => {
        const { token } = await members.invite("alpha", ALICE, ADMIN);
        await members.remove("alpha", ALICE, ADMIN);
        return token;
      },
    ],
    ...["", "x", "x".repeat(43), "é".repeat(43), "x".repeat(10_000)].map(
      (token): [string, () => Promise<string>] => [
        `made up (${token.slice(0, 5)})`,
        async () => token,
      ],
    ),
  ];

  test.each(noLinks)("a link that is %s opens nothing", async (_, open) => {
    const started = await start();
    const { members, audit } = started;
    const token = await open(started);
    const before = await audit.list({ desk: null, limit: 100 });
    expect(await members.findInvitation(token)).toBeNull();
    expect(await members.spendLink(token, { passwordHash: "hash" }, null)).toBeNull();
    expect(await members.spendLink(token, { passkey: passkey("one") }, null)).toBeNull();
    expect(await audit.list({ desk: null, limit: 100 })).toEqual(before);
  });

  test("nobody is invited who has joined, or is a member of another desk", async () => {
    const { members, join } = await start();
    await members.invite("beta", BOB, ADMIN);
    await join();
    const next = "member reset alpha alice@example.com";
    expect(await failure(() => members.invite("alpha", ALICE, ADMIN))).toMatchObject({ next });
    const elsewhere = await failure(() => members.invite("alpha", "BOB@example.com", ADMIN));
    expect(elsewhere).toMatchObject({ next: "member remove beta bob@example.com" });
    expect((await members.list("alpha")).map(({ email }) => email)).toEqual([ALICE]);
    expect((await members.list("beta")).map(({ email }) => email)).toEqual([BOB]);
  });

  test("a member invites to and removes from their own desk, and cannot remove themselves", async () => {
    const started = await start();
    const { members, join } = started;
    const alice = { ...(await join()), client: "192.0.2.1" };
    await join(BOB, "beta");
    const { token } = await members.invite("alpha", "carol@example.com", alice);
    const carol = await members.spendLink(token, { passwordHash: "hash" }, null);
    const again = () => members.invite("alpha", "carol@example.com", alice);
    expect(await reason(again)).toEndWith("carol@example.com is already a member.");
    const elsewhere = () => members.invite("alpha", BOB, alice);
    expect(await reason(elsewhere)).toEndWith(`${BOB} cannot be invited: ask an administrator.`);
    expect(await reason(() => members.remove("alpha", ALICE, alice))).toContain("remove yourself");
    for (const ofAnother of [
      () => members.invite("beta", "dave@example.com", alice),
      () => members.remove("beta", BOB, alice),
    ]) {
      expect(await failure(ofAnother)).toBeInstanceOf(NotFoundError);
    }
    await members.remove("alpha", "carol@example.com", alice);
    expect(await members.find(carol?.id ?? "")).toBeNull();
    expect((await members.list("alpha")).map(({ email }) => email)).toEqual([ALICE]);
    expect((await members.list("beta")).map(({ email }) => email)).toEqual([BOB]);
    const removed = { memberId: carol?.id ?? "", client: null };
    expect(await failure(() => members.remove("alpha", ALICE, removed))).toBeInstanceOf(
      NotFoundError,
    );
    expect(await what(started, 3)).toEqual([
      [ALICE, "member.removed", "carol@example.com", null],
      ["carol@example.com", "member.joined", "carol@example.com", "with a password"],
      [ALICE, "member.invited", "carol@example.com", "as a manager"],
    ]);
  });

  test("an invitation has the role that it names, or the one that it had", async () => {
    const { members } = await start();
    const roleOf = async (role?: MemberRole) =>
      (await members.invite("alpha", ALICE, ADMIN, { role })).member.role;
    expect(await roleOf("viewer")).toBe("viewer");
    expect(await roleOf()).toBe("viewer");
    expect(await roleOf("manager")).toBe("manager");
    expect((await members.list("alpha")).map(({ role }) => role)).toEqual(["manager"]);
  });

  test("a role is set by administrators and managers, once, and never one's own", async () => {
    const started = await start();
    const { members, join } = started;
    const alice = await join();
    const bob = await join(BOB);
    await join("carol@example.com", "beta");
    const set = (by: Author, email: string, role: MemberRole) =>
      members.setRole("alpha", email, role, by);
    expect(await set(alice, BOB, "viewer")).toMatchObject({
      changed: true,
      member: { email: BOB, role: "viewer" },
    });
    expect(await set(alice, BOB, "viewer")).toMatchObject({ changed: false });
    expect(await members.find(bob.memberId)).toMatchObject({
      role: "viewer",
      signed_out_at: START,
    });
    expect(await reason(() => set(alice, ALICE, "viewer"))).toContain("your own role");
    expect(await failure(() => set(alice, "carol@example.com", "viewer"))).toBeInstanceOf(
      NotFoundError,
    );
    await set(ADMIN, BOB, "manager");
    expect(await what(started, 3)).toEqual([
      [null, "member.role_changed", BOB, "to manager"],
      [ALICE, "member.role_changed", BOB, "to viewer"],
      [BOB, "member.joined", BOB, "with a password"],
    ]);
  });

  test("a viewer changes only themselves, also if the change began before", async () => {
    const started = await start();
    const { members, passkeys, registry, alpha, mint, join } = started;
    const alice = await join();
    await join("carol@example.com");
    const bob = await join(BOB);
    await members.setRole("alpha", BOB, "viewer", ADMIN);
    const before = await what(started, 100);
    for (const change of [
      () => mint({}, bob),
      () => mint({ scope: "read" }, bob),
      () => registry.rotateKey(alpha.keyId, { overlapMs: 0 }, bob),
      () => registry.relabelKey(alpha.keyId, "label", {}, bob),
      () => registry.revokeKey(alpha.keyId, {}, bob),
      () => registry.keepSent("alpha", false, bob),
      () => members.invite("alpha", "eve@example.com", bob),
      () => members.setRole("alpha", ALICE, "viewer", bob),
      () => members.remove("alpha", ALICE, bob),
    ]) {
      expect(await failure(change)).toBeInstanceOf(UserError);
    }
    expect(await what(started, 100)).toEqual(before);
    expect(await members.find(alice.memberId)).toMatchObject({ role: "manager" });
    await members.setPassword(bob, "hash of the second");
    await passkeys.add(bob, passkey("one"));
    await members.signOutEverywhere(bob);
    expect(await members.find(bob.memberId)).toMatchObject({ passkeys: 1, role: "viewer" });
  });

  test("the only manager who has joined stays one, and only an administrator removes them", async () => {
    const { members, join } = await start();
    const alice = await join();
    const bob = await join(BOB);
    await members.invite("alpha", "carol@example.com", ADMIN);
    // Both began while both were managers.
    await Promise.allSettled([
      members.setRole("alpha", BOB, "viewer", alice),
      members.setRole("alpha", ALICE, "viewer", bob),
      members.remove("alpha", BOB, alice),
      members.remove("alpha", ALICE, bob),
    ]);
    const left = (await members.list("alpha")).filter(({ joined_at }) => joined_at !== null);
    const [last] = left.filter(({ role }) => role === "manager");
    expect(left.length - 1).toBe(left.filter(({ role }) => role === "viewer").length);
    const demote = () => members.setRole("alpha", last?.email ?? "", "viewer", ADMIN);
    expect(await failure(demote)).toMatchObject({
      message: expect.stringContaining("is the only manager of desk"),
      next: "member role alpha EMAIL manager",
    });
    // An open invitation may be anything.
    await members.setRole("alpha", "carol@example.com", "viewer", ADMIN);
    await members.remove("alpha", last?.email ?? "", ADMIN);
    expect((await members.list("alpha")).map(({ email }) => email)).not.toContain(last?.email);
  });

  test("a full desk invites nobody until a member is removed, and still makes new links", async () => {
    const { members, join } = await start();
    const alice = await join();
    for (let count = 1; count < MEMBERS_MAX; count += 1) {
      await members.invite("alpha", `m${count}@example.com`, ADMIN);
    }
    for (const by of [ADMIN, alice]) {
      expect(await reason(() => members.invite("alpha", BOB, by))).toContain("100 members");
    }
    await members.invite("alpha", "m1@example.com", alice);
    await members.invite("beta", BOB, ADMIN);
    await members.remove("alpha", "m1@example.com", alice);
    await members.invite("alpha", "m100@example.com", alice);
    expect(await members.list("alpha")).toHaveLength(MEMBERS_MAX);
  });

  test("the time of a member's last sign-in is recorded", async () => {
    const { members, audit, alpha, time, join } = await start();
    const { memberId: actor } = await join();
    await join("carol@example.com");
    const signedIn = async () => (await members.list("alpha")).map((one) => one.signed_in_at);
    expect(await signedIn()).toEqual([null, null]);
    const entry = { deskId: alpha.deskId, actor, client: null, subjectId: actor } as const;
    await audit.append({ ...entry, action: "member.signed_in" });
    time.at += 5;
    await audit.append({ ...entry, action: "member.signed_in" });
    time.at += 5;
    await audit.append({ ...entry, actor: null, action: "member.sign_in_failed" });
    expect(await signedIn()).toEqual([START + 5, null]);
  });

  test("a reset ends sessions at once; password and passkeys go when its link is used", async () => {
    const { members, passkeys, time, join } = await start();
    const alice = await join();
    await passkeys.add(alice, passkey("old"));
    time.at += 1_000;
    const { token } = await members.reset("alpha", "Alice@example.com");
    expect(await members.findInvitation(token)).toMatchObject({ kind: "reset" });
    expect(await members.findForSignIn(ALICE)).toMatchObject({
      password_hash: "hash of the first",
      passkeys: 1,
      signed_out_at: time.at,
    });
    time.at += 1_000;
    const account = await members.spendLink(token, { passwordHash: "hash of the second" }, null);
    expect(account).toMatchObject({ id: alice.memberId, passkeys: 0, signed_out_at: time.at });
    expect(account?.joined_at).toBe(START);
    expect(await members.passwordHash(alice.memberId)).toBe("hash of the second");
    expect(await passkeys.find("old")).toBeNull();

    const second = await members.reset("alpha", ALICE);
    const taken = await members.spendLink(second.token, { passkey: passkey("new") }, null);
    expect(taken).toMatchObject({ has_password: false, passkeys: 1 });
    expect(await members.passwordHash(alice.memberId)).toBeNull();
  });

  test("a reset with lock stops password and passkeys at once, and still knows the old password", async () => {
    const { members, passkeys, join } = await start();
    const alice = await join();
    await passkeys.add(alice, passkey("old"));
    await members.reset("alpha", ALICE, { lock: true });
    await members.reset("alpha", ALICE, { lock: true });
    expect(await members.findForSignIn(ALICE)).toMatchObject({
      password_hash: null,
      passkeys: 0,
    });
    expect(await passkeys.find("old")).toBeNull();
    expect(await members.passwordHash(alice.memberId)).toBe("hash of the first");
  });

  test("a link whose passkey is registered already stays open, and nothing else changes", async () => {
    const { members, passkeys, join } = await start();
    const bob = await join(BOB, "beta");
    await passkeys.add(bob, passkey("taken"));
    await join();
    const { token } = await members.reset("alpha", ALICE);
    const spend = () => members.spendLink(token, { passkey: passkey("taken") }, null);
    expect(await failure(spend)).toBeInstanceOf(UserError);
    expect(await members.findInvitation(token)).not.toBeNull();
    const account = await members.findForSignIn(ALICE);
    expect(account?.password_hash).toBe("hash of the first");
    expect((await passkeys.find("taken"))?.member_id).toBe(bob.memberId);
  });

  test("another desk's member is as unknown as one that does not exist", async () => {
    const { members, join } = await start();
    await join(BOB, "beta");
    const before = await members.findForSignIn(BOB);
    for (const work of [
      (email: string) => members.reset("alpha", email),
      (email: string) => members.remove("alpha", email, ADMIN),
    ]) {
      const answers = [];
      for (const email of [BOB, "eve@example.com"]) {
        const error = await failure(() => work(email));
        expect(error).toBeInstanceOf(NotFoundError);
        answers.push(String(error).replaceAll(email, "WHO"));
      }
      expect(new Set(answers).size).toBe(1);
    }
    expect(await members.findForSignIn(BOB)).toEqual(before);
  });

  test("a removed member has no way in, and the address is free for another desk", async () => {
    const { members, passkeys, time, join } = await start();
    const alice = await join();
    await passkeys.add(alice, passkey("one"));
    time.at += 5;
    const removed = await members.remove("alpha", ALICE, ADMIN);
    expect(removed).toMatchObject({ id: alice.memberId, removed_at: time.at });
    expect(await members.find(alice.memberId)).toBeNull();
    expect(await members.findForSignIn(ALICE)).toBeNull();
    expect(await passkeys.find("one")).toBeNull();
    expect(await members.list("alpha")).toEqual([]);
    for (const change of [
      () => members.setPassword(alice, "hash"),
      () => members.signOutEverywhere(alice),
      () => passkeys.add(alice, passkey("two")),
      () => passkeys.remove(alice, "one"),
    ]) {
      expect(await failure(change)).toBeInstanceOf(NotFoundError);
    }
    const again = await members.invite("beta", ALICE, ADMIN);
    expect(again.member).toMatchObject({ desk: "beta", has_password: false, passkeys: 0 });
    expect(again.member.id).not.toBe(alice.memberId);
  });

  test.each([
    [0, "in the same millisecond"],
    [-MINUTE_MS, "after the clock was set back"],
  ])("each end of all sessions raises signed_out_at (%d ms later, %s)", async (stepMs) => {
    const { members, time, join } = await start();
    const alice = await join();
    let last = (await members.find(alice.memberId))?.signed_out_at ?? 0;
    for (const end of [
      () => members.setPassword(alice, "hash of the second"),
      () => members.signOutEverywhere(alice),
      () => members.reset("alpha", ALICE),
    ]) {
      time.at += stepMs;
      await end();
      const account = await members.find(alice.memberId);
      expect(account?.signed_out_at).toBeGreaterThan(last);
      expect(account).not.toHaveProperty("password_hash");
      last = account?.signed_out_at ?? 0;
    }
    expect(await members.passwordHash(alice.memberId)).toBe("hash of the second");
  });

  test("an unknown address finds nobody", async () => {
    const { members, join } = await start();
    await join();
    for (const typed of ["eve@example.com", "", "' OR 1 = 1 --", "%", "\u0000"]) {
      expect(await members.findForSignIn(typed)).toBeNull();
    }
  });
}
