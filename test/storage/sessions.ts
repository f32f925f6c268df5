/** Sessions of the console. */
import { expect, test } from "bun:test";
import type { Session } from "../../src/domain/member/session.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/text/time.ts";
import { START, start } from "./start.ts";

export function sessionsTests(): void {
  test("are kept as they began, with their last use, also by a storage that is opened again", async () => {
    const { sessions, close, open } = await start();
    const withKey = sessionOf("b", { passkeyId: "credential", seenAt: START + 1 });
    for (const session of [sessionOf("a"), withKey, sessionOf("c", { memberId: "02M" })]) {
      await sessions.add(session, 20);
    }
    expect(await sessions.find("unknown")).toBeNull();
    expect(await sessions.list("01M")).toEqual([withKey, sessionOf("a")]);
    await sessions.recordUse("a", START + MINUTE_MS);
    await close();
    const again = (await open()).sessions;
    const used = sessionOf("a", { seenAt: START + MINUTE_MS });
    expect(await again.list("01M")).toEqual([used, withKey]);
    expect(await again.find("a")).toEqual(used);
  });

  test("that were removed never come back", async () => {
    const { sessions, close, open } = await start();
    for (const id of ["a", "b"]) await sessions.add(sessionOf(id), 20);
    expect([await sessions.remove("a"), await sessions.remove("a")]).toEqual([true, false]);
    await sessions.recordUse("a", START);
    expect(await sessions.find("a")).toBeNull();
    await sessions.add(sessionOf("c"), 20);
    for (const _ of [1, 2]) await sessions.discard("c");
    expect(await sessions.find("c")).toBeNull();
    await close();
    expect(await (await open()).sessions.list("01M")).toEqual([sessionOf("b")]);
  });

  test("a member's least recently used one makes room for one more, also of several at once", async () => {
    const { sessions } = await start();
    await sessions.add(sessionOf("theirs", { memberId: "02M" }), 3);
    for (const id of ["a", "b", "c"]) await sessions.add(sessionOf(id), 3);
    await sessions.recordUse("a", START + 1);
    await sessions.recordUse("c", START + 2);
    // The clock was set back: the new one stays all the same.
    const early = sessionOf("d", { startedAt: START - DAY_MS, seenAt: START - DAY_MS });
    await sessions.add(early, 3);
    expect((await sessions.list("01M")).map(({ id }) => id)).toEqual(["c", "a", "d"]);
    const more = Array.from({ length: 10 }, (_, index) => sessionOf(`more-${index}`));
    await Promise.all(more.map(async (session) => sessions.add(session, 3)));
    expect(await sessions.list("01M")).toHaveLength(3);
    expect(await sessions.list("02M")).toHaveLength(1);
  });

  test("that nobody has used for long are removed, whichever way the clock was wrong", async () => {
    const { sessions } = await start();
    for (const ageMs of [HOUR_MS + 1, HOUR_MS, 0, -HOUR_MS, -HOUR_MS - 1]) {
      await sessions.add(sessionOf(String(ageMs), { seenAt: START - ageMs }), 20);
    }
    await sessions.removeUnused(START, HOUR_MS);
    const kept = (await sessions.list("01M")).map(({ id }) => Number(id));
    expect(kept).toEqual([-HOUR_MS, 0, HOUR_MS]);
  });
}

const sessionOf = (id: string, change: Partial<Session> = {}): Session => ({
  id,
  memberId: "01M",
  signedOutAt: 0,
  passkeyId: null,
  browser: "Firefox on Linux",
  address: "192.0.2.1",
  startedAt: START,
  seenAt: START,
  ...change,
});
