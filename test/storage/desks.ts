/** Desks. */
import { expect, test } from "bun:test";
import { until } from "../kit/setup.ts";
import { SignedOutError, UserError } from "../../src/lib/errors.ts";
import { SILENCE_DEFAULT } from "../../src/domain/desk/silence.ts";
import { HOUR_MS } from "../../src/lib/text/time.ts";
import { ADMIN } from "../../src/domain/storage/author.ts";
import { ALICE, BOB, failure, passkey, reason, start, what } from "./start.ts";

export function desksTests(): void {
  test("a desk's name is short and plain", async () => {
    const { registry } = await start();
    for (const name of ["a", "0", "alpha-1.b_c", "x".repeat(63)]) {
      expect((await registry.createDesk(name, { ifMissing: false })).desk.name).toBe(name);
    }
    for (const name of ["", "A", "-a", ".a", "_", "a b", "a\n", "é", "x".repeat(64)]) {
      const error = await failure(() => registry.createDesk(name, { ifMissing: true }));
      expect([name, String(error)]).toEqual([
        name,
        expect.stringMatching(/cannot be a desk's name: .*begin with a letter or digit/),
      ]);
    }
  });

  test("a desk is created once, and listed by name", async () => {
    const { registry, time } = await start();
    const { desk, created } = await registry.createDesk("aa", { ifMissing: true });
    expect({ desk, created }).toEqual({
      desk: {
        id: desk.id,
        name: "aa",
        created_at: time.at,
        archived_at: null,
        differing_duplicates: 0,
        passkeys_required: false,
        keeps_sent: true,
        keys_max: 100,
      },
      created: true,
    });
    const again = await registry.createDesk("aa", { ifMissing: true });
    expect(again).toEqual({ desk, created: false });
    expect(await failure(() => registry.createDesk("aa", { ifMissing: false }))).toBeInstanceOf(
      UserError,
    );
    expect(await registry.getDesk("aa")).toEqual(desk);
    const names = (await registry.listDesks()).map((one) => one.name);
    expect(names).toEqual(["aa", "alpha", "beta"]);
  });

  test("a desk is renamed with everything that it has, at once and for a running server", async () => {
    const started = await start();
    const { registry, members, server, alpha, append, list, join } = started;
    const { memberId } = await join();
    await append();
    expect((await server.findOwner(alpha.key))?.deskName).toBe("alpha");
    expect(await registry.renameDesk("alpha", "alpha")).toEqual({ changed: false });
    expect(await registry.renameDesk("alpha", "omega")).toEqual({ changed: true });
    // A storage may remember it for a moment.
    await until(async () => (await server.findOwner(alpha.key))?.deskName === "omega");
    expect((await registry.findKey(alpha.keyId))?.desk).toBe("omega");
    expect((await members.find(memberId))?.desk).toBe("omega");
    expect((await list()).signals).toMatchObject([{ desk: "omega" }]);
    expect(await what(started, 1, "omega")).toEqual([
      [null, "desk.renamed", null, 'it was "alpha"'],
    ]);
    for (const [from, to, error] of [
      ["omega", "beta", "already exists"],
      ["omega", "No Name", "cannot be a desk's name"],
      ["alpha", "gamma", "There is no desk"],
    ] as const) {
      expect(await reason(() => registry.renameDesk(from, to))).toContain(error);
    }
    await registry.createDesk("alpha", { ifMissing: false });
    expect((await registry.listDesks()).map(({ name }) => name)).toEqual([
      "alpha",
      "beta",
      "omega",
    ]);
  });

  test("an archived desk refuses sign-ins and changes, and loses only its sessions", async () => {
    const started = await start();
    const { registry, members, passkeys, mint, alpha, time, join, append } = started;
    const alice = await join();
    await append();
    const before = await members.find(alice.memberId);
    const { token } = await members.invite("alpha", BOB, ADMIN);
    time.at += 5;
    expect(await registry.archiveDesk("alpha", true)).toEqual({ changed: true });
    time.at += 5;
    expect(await registry.archiveDesk("alpha", true)).toEqual({ changed: false });
    expect(await registry.getDesk("alpha")).toMatchObject({ archived_at: time.at - 5 });
    expect(await registry.findKey(alpha.keyId)).toMatchObject({ desk_archived_at: time.at - 5 });
    expect(await members.find(alice.memberId)).toBeNull();
    expect(await members.findForSignIn(ALICE)).toMatchObject({ desk_archived_at: time.at - 5 });
    expect(await members.findInvitation(token)).toBeNull();
    expect(await members.spendLink(token, { passwordHash: "hash" }, null)).toBeNull();
    expect(await members.list("alpha")).toHaveLength(2);
    const archived = { next: "desk archive alpha --undo" };
    for (const refused of [
      () => registry.createDesk("alpha", { ifMissing: false }),
      () => registry.createDesk("alpha", { ifMissing: true }),
      () => mint(),
      () => registry.rotateKey(alpha.keyId, { overlapMs: 0 }, ADMIN),
      () => members.invite("alpha", "eve@example.com", ADMIN),
      () => members.reset("alpha", ALICE),
    ]) {
      expect(await failure(refused)).toMatchObject(archived);
    }
    expect(await registry.mintObstacle("alpha")).toContain("is archived");
    expect(await reason(() => registry.renameDesk("beta", "alpha"))).toContain(
      "already exists, and is archived",
    );
    const late = { ...alice, signedOutAt: before?.signed_out_at ?? 0 };
    for (const change of [
      () => registry.revokeKey(alpha.keyId, {}, late),
      () => members.remove("alpha", BOB, late),
    ]) {
      expect(await failure(change)).toBeInstanceOf(SignedOutError);
    }
    expect(await failure(() => passkeys.add(late, passkey("one")))).toBeInstanceOf(SignedOutError);
    expect(await registry.archiveDesk("alpha", false)).toEqual({ changed: true });
    expect(await registry.archiveDesk("alpha", false)).toEqual({ changed: false });
    const after = await members.find(alice.memberId);
    expect(after?.signed_out_at).toBeGreaterThan(before?.signed_out_at ?? 0);
    expect(await members.findForSignIn(ALICE)).toMatchObject({
      has_password: true,
      desk_archived_at: null,
    });
    expect((await members.findInvitation(token))?.member.email).toBe(BOB);
    expect(await what(started, 2)).toEqual([
      [null, "desk.unarchived", null, null],
      [null, "desk.archived", null, null],
    ]);
  });

  test("an overview counts keys that work, members and signals, and has the latest signal", async () => {
    const { registry, members, append, mint, alpha, beta, time, join } = await start();
    await join();
    await members.invite("alpha", BOB, ADMIN);
    await members.remove("alpha", BOB, ADMIN);
    await members.invite("alpha", "carol@example.com", ADMIN);
    const { record } = await mint({ expiresInMs: 5 });
    await registry.revokeKey((await mint()).record.id, {}, ADMIN);
    await append();
    await append({}, beta);
    time.at += 1;
    const { id } = await append({ symbol: "LAST" }, { keyId: record.id });
    const latest_signal = { id, received_at: time.at, symbol: "LAST" };
    const overview = async () => registry.listOverviews();
    expect(await overview()).toMatchObject([
      { name: "alpha", active_keys: 2, members: 2, signals: 2, latest_signal },
      { name: "beta", active_keys: 1, members: 0, signals: 1 },
    ]);
    expect((await registry.listOverviews(1)).map(({ signals }) => signals)).toEqual([1, 1]);
    time.at += 5;
    expect((await overview())[0]).toMatchObject({ active_keys: 1 });
    await registry.archiveDesk("alpha", true);
    expect((await overview())[0]).toMatchObject({ active_keys: 0, members: 2, signals: 2 });
    await registry.createDesk("gamma", { ifMissing: false });
    const none = { active_keys: 0, members: 0, signals: 0, latest_signal: null };
    expect((await overview())[2]).toMatchObject({ name: "gamma", ...none });
    expect((await registry.findKey(alpha.keyId))?.revoked_at).toBeNull();
  });

  test("an unknown desk is refused everywhere, with the nearest name", async () => {
    const { registry, members, audit, mint } = await start();
    for (const work of [
      () => mint({ desk: "alpa" }),
      () => registry.listKeys("alpa"),
      () => registry.getDesk("alpa"),
      () => registry.limitKeys("alpa", 1),
      () => registry.requirePasskeys("alpa", true),
      () => registry.renameDesk("alpa", "omega"),
      () => registry.archiveDesk("alpa", true),
      () => members.invite("alpa", ALICE, ADMIN),
      () => members.list("alpa"),
      () => audit.list({ desk: "alpa", limit: 1 }),
    ]) {
      expect(await reason(work)).toContain('nearest name is "alpha"');
    }
    expect(await registry.listKeys(null)).toHaveLength(2);
  });

  test("requiring passkeys shows in its members' accounts from the next look on", async () => {
    const { registry, members, join, passkeys } = await start();
    const alice = await join();
    expect(await registry.requirePasskeys("alpha", true)).toEqual({ changed: true });
    expect(await registry.requirePasskeys("alpha", true)).toEqual({ changed: false });
    const account = async () => members.findForSignIn(ALICE);
    const password_hash = "hash of the first";
    expect(await account()).toMatchObject({ passkeys_required: true, password_hash });
    await passkeys.add(alice, passkey("one"));
    expect(await account()).toMatchObject({ has_password: false, password_hash: null });
    await registry.requirePasskeys("alpha", false);
    expect(await account()).toMatchObject({ has_password: true, password_hash });
  });

  test("a desk chooses when silence is noticed", async () => {
    const started = await start();
    const { registry, join } = started;
    const alice = await join();
    expect(await registry.silenceRule("alpha")).toEqual(SILENCE_DEFAULT);
    const hours = { days: ["Mon"], from: "09:30", to: "16:00", zone: "Europe/Berlin" } as const;
    const rule = { spanMs: HOUR_MS, hours };
    await registry.setSilenceRule("alpha", rule, alice);
    expect(await registry.silenceRule("alpha")).toEqual(rule);
    expect(await registry.silenceRule("beta")).toEqual(SILENCE_DEFAULT);
    const detail = "after 1 h, Mon 09:30 to 16:00 Europe/Berlin";
    expect(await what(started, 1)).toEqual([[ALICE, "desk.silence_set", null, detail]]);
    const bad = { spanMs: 1, hours: null };
    expect(await reason(() => registry.setSilenceRule("alpha", bad, ADMIN))).toContain("31 days");
    await registry.setSilenceRule("alpha", SILENCE_DEFAULT, ADMIN);
    expect(await registry.silenceRule("alpha")).toEqual(SILENCE_DEFAULT);
  });
}
