/** Passkeys. */
import { expect, test } from "bun:test";
import { UserError } from "../../src/lib/errors.ts";
import { ADMIN } from "../../src/domain/storage/author.ts";
import { ALICE, BOB, failure, passkey, reason, start } from "./start.ts";

export function passkeysTests(): void {
  test("keep what a signature needs, and are the member's own", async () => {
    const { members, passkeys, time, join } = await start();
    const [alice, bob] = [await join(), await join(BOB)];
    await passkeys.add(alice, passkey("one"));
    const made = { id: "one", name: "Key one", created_at: time.at };
    expect(await passkeys.find("one")).toEqual({
      ...made,
      member_id: alice.memberId,
      desk_id: (await members.findForSignIn(ALICE))?.desk_id ?? 0,
      public_key: new Uint8Array([1, 2, 3]),
      counter: 7,
      transports: ["internal", "hybrid"],
      last_used_at: null,
    });
    expect(await passkeys.list(alice.memberId)).toEqual([{ ...made, last_used_at: null }]);
    expect(await passkeys.list(bob.memberId)).toEqual([]);
    const answers = [];
    for (const id of ["one", "unknown"]) {
      answers.push(await reason(() => passkeys.remove(bob, id)));
    }
    expect(new Set(answers).size).toBe(1);
    const add = () => passkeys.add(bob, passkey("one"));
    expect(await failure(add)).toBeInstanceOf(UserError);
    expect((await passkeys.find("one"))?.member_id).toBe(alice.memberId);
  });

  test("the first can be added only once", async () => {
    const { passkeys, join } = await start();
    const alice = await join();
    const bob = await join(BOB, "beta");
    await passkeys.add(bob, passkey("other"), { onlyIfFirst: true });
    const add = (name: string) => passkeys.add(alice, passkey(name), { onlyIfFirst: true });
    await add("one");
    expect(await failure(() => add("two"))).toBeInstanceOf(UserError);
    expect((await passkeys.list(alice.memberId)).map(({ id }) => id)).toEqual(["one"]);
    await passkeys.remove(alice, "one");
    await add("three");
  });

  test("record each use once: a counter that does not rise is a copy", async () => {
    const { passkeys, time, join } = await start();
    const alice = await join();
    await passkeys.add(alice, passkey("one"));
    time.at += 10;
    const uses = await Promise.all([8, 8].map(async (count) => passkeys.recordUse("one", count)));
    expect(uses.toSorted()).toEqual(["recorded", "regressed"]);
    expect(await passkeys.find("one")).toMatchObject({ counter: 8, last_used_at: time.at });
    expect(await passkeys.recordUse("one", 0)).toBe("regressed");
    expect(await passkeys.recordUse("unknown", 9)).toBe("unknown");
    await passkeys.add(alice, { ...passkey("two"), counter: 0 });
    for (const _ of [1, 2]) expect(await passkeys.recordUse("two", 0)).toBe("recorded");
  });

  test("can be removed, but not the last way to sign in", async () => {
    const { members, passkeys, registry } = await start();
    const { token } = await members.invite("alpha", ALICE, ADMIN);
    const account = await members.spendLink(token, { passkey: passkey("one") }, null);
    const alice = { memberId: account?.id ?? "", client: null };
    const obstacle = (id: string) => passkeys.removalObstacle(alice.memberId, id);
    expect(await obstacle("one")).toContain("only way to sign in");
    expect(await reason(() => passkeys.remove(alice, "one"))).toContain("only way");
    await passkeys.add(alice, passkey("two"));
    expect(await obstacle("one")).toBeNull();
    await passkeys.remove(alice, "one");
    expect(await passkeys.find("one")).toBeNull();
    await members.setPassword(alice, "hash");
    await registry.requirePasskeys("alpha", true);
    expect(await obstacle("two")).toContain("your desk requires one");
    await registry.requirePasskeys("alpha", false);
    await passkeys.remove(alice, "two");
    expect(await passkeys.list(alice.memberId)).toEqual([]);
  });

  test.each(["", "a\nb", "x".repeat(101)])("cannot be named %j", async (bad) => {
    const { passkeys, join } = await start();
    const alice = await join();
    const add = () => passkeys.add(alice, { ...passkey("one"), name: bad });
    expect(await failure(add)).toBeInstanceOf(UserError);
    expect(await passkeys.list(alice.memberId)).toEqual([]);
  });
}
