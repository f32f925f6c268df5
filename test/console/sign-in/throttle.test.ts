/** Guessing passwords: what is counted, for whom, and how long. */
import { describe, expect, test } from "bun:test";
import { ExpiringMap } from "../../../src/lib/expiring-map.ts";
import {
  type Attempt,
  FAILURES_MAX,
  type Guess,
  NETWORK_FAILURES_MAX,
  SIGN_INS_MAX,
  SignInThrottle,
  THROTTLE_WINDOW_MS,
} from "../../../src/console/server/limits/throttle.ts";
import { checkPassword, ConcurrencyLimit } from "../../../src/console/pages/sign-in/credentials.ts";
import type { ConsoleServices } from "../../../src/console/server/services.ts";
import type { Visit } from "../../../src/console/server/visit.ts";
import { attemptsInMemory } from "../../../src/store/sqlite/memory.ts";
import { HOUR_MS } from "../../../src/lib/text/time.ts";
import { ALICE, PASSWORD, signIn, startSignedIn, isSignedIn, auditLines } from "../_console.ts";

function makeThrottle(clock: () => number = Date.now): SignInThrottle {
  const secret = crypto.getRandomValues(new Uint8Array(32));
  return new SignInThrottle(secret, attemptsInMemory(clock), clock);
}

function begin(throttle: SignInThrottle, guess: Partial<Guess>): Promise<Attempt> {
  return throttle.begin({ email: ALICE, device: null, address: "192.0.2.1", ...guess });
}

async function fail(throttle: SignInThrottle, times: number, guess: Partial<Guess>): Promise<void> {
  for (let time = 0; time < times; time += 1) await begin(throttle, guess);
}

describe("guessing", () => {
  test("strangers are stopped for known and unknown addresses, but not the member's own browser", async () => {
    const { app: desk, visitor: honest } = await startSignedIn();
    await honest.get("/account");
    await honest.post("/sign-out");
    const stranger = desk.visitor();
    await stranger.get("/sign-in");
    for (const email of [ALICE, "nobody@alpha.example"]) {
      const guesses = await Promise.all(
        Array.from({ length: FAILURES_MAX + 5 }, (_, index) =>
          stranger.post("/sign-in", { email, password: `guess number ${index}` }),
        ),
      );
      const statuses = guesses.map(({ status }) => status);
      expect(statuses.filter((status) => status === 422).length).toBe(FAILURES_MAX);
      expect(statuses.filter((status) => status === 429).length).toBe(5);
      const next = "/signals?symbol=btc";
      const limited = await stranger.post("/sign-in", { email, password: PASSWORD, next });
      expect(limited.status, "even with the right one").toBe(429);
      const retryAfterS = Number(limited.headers.get("retry-after"));
      expect(retryAfterS).toBeGreaterThan(0);
      expect(retryAfterS).toBeLessThanOrEqual(THROTTLE_WINDOW_MS / 1_000);
      expect(limited.text).toContain('name="next" value="/signals?symbol=btc"');
      expect(limited.text).toMatch(/Too many failed attempts\. .* Try again in \d+ minutes/);
    }
    const failures = (await auditLines(desk)).filter((line) =>
      line.startsWith("member.sign_in_failed"),
    );
    expect(failures.length, "what is refused unseen fills no audit").toBe(FAILURES_MAX);
    expect(isSignedIn(await signIn(honest))).toBe(true);
  });

  const START = Date.UTC(2026, 4, 1);
  const now = { value: START };

  test("a window begins with the first failure; after it, attempts are allowed again", async () => {
    now.value = START;
    const throttle = makeThrottle(() => now.value);
    await fail(throttle, FAILURES_MAX, {});
    now.value += 1_000;
    expect(await begin(throttle, {})).toEqual({
      isAllowed: false,
      isSignIns: false,
      retryAt: START + THROTTLE_WINDOW_MS,
    });
    expect((await begin(throttle, { email: ALICE.toUpperCase() })).isAllowed, "in capitals").toBe(
      false,
    );
    expect((await begin(throttle, { email: ` ${ALICE} ` })).isAllowed, "with spaces").toBe(false);
    expect(
      (await begin(throttle, { email: "bob@alpha.example" })).isAllowed,
      "another member",
    ).toBe(true);
    now.value = START + THROTTLE_WINDOW_MS;
    expect((await begin(throttle, {})).isAllowed).toBe(true);
    await fail(throttle, FAILURES_MAX, {});
    now.value -= HOUR_MS;
    expect((await begin(throttle, {})).isAllowed, "after the clock was set back").toBe(true);
  });

  test("a success does not count as a failure and does not clear earlier ones", async () => {
    const throttle = makeThrottle(() => now.value);
    for (let time = 0; time < 2 * FAILURES_MAX; time += 1) {
      const attempt = await begin(throttle, {});
      expect(attempt.isAllowed).toBe(true);
      if (attempt.isAllowed) await attempt.succeeded();
    }
    await fail(throttle, FAILURES_MAX - 1, {});
    const right = await begin(throttle, {});
    if (right.isAllowed) await right.succeeded();
    await fail(throttle, 1, {});
    expect((await begin(throttle, {})).isAllowed).toBe(false);
  });

  test("a member can sign in 30 times per window from anywhere, and so can each passkey", async () => {
    now.value = START;
    const throttle = makeThrottle(() => now.value);
    const device = throttle.rememberDevice(ALICE);
    for (let time = 0; time < SIGN_INS_MAX; time += 1) {
      const attempt = await begin(throttle, time % 2 === 0 ? { device } : {});
      if (attempt.isAllowed) await attempt.succeeded();
    }
    const retryAt = START + THROTTLE_WINDOW_MS;
    const limited = { isAllowed: false, retryAt, isSignIns: true } as const;
    expect(await begin(throttle, {})).toEqual(limited);
    expect(await begin(throttle, { device })).toEqual(limited);
    expect((await begin(throttle, { email: "bob@alpha.example" })).isAllowed).toBe(true);
    for (let time = 0; time < SIGN_INS_MAX; time += 1) {
      expect(await throttle.beginPasskeySession("one")).toBe(0);
    }
    expect(await throttle.beginPasskeySession("one")).toBe(limited.retryAt);
    expect(await throttle.beginPasskeySession("two")).toBe(0);
    now.value = limited.retryAt;
    expect((await begin(throttle, {})).isAllowed).toBe(true);
    expect(await throttle.beginPasskeySession("one")).toBe(0);
  });

  test("trying many members is limited per network", async () => {
    const throttle = makeThrottle(() => now.value);
    for (let index = 0; index < NETWORK_FAILURES_MAX; index += 1) {
      const address = `2001:db8::${index.toString(16)}`;
      const attempt = await begin(throttle, { email: `${index}@alpha.example`, address });
      expect(attempt.isAllowed).toBe(true);
    }
    for (const address of ["2001:db8::ffff", "2001:DB8:0:0:1:2:3:4", "2001:0db8:0000::1"]) {
      expect((await begin(throttle, { address })).isAllowed, address).toBe(false);
    }
    for (const address of ["2001:db8:0:1::1", "::1", "192.0.2.1"]) {
      expect((await begin(throttle, { address })).isAllowed, address).toBe(true);
    }
  });

  test("a known browser has its own count: it neither affects others nor is affected by them", async () => {
    const throttle = makeThrottle(() => now.value);
    const device = throttle.rememberDevice(ALICE);
    const second = throttle.rememberDevice(ALICE);
    await fail(throttle, NETWORK_FAILURES_MAX + FAILURES_MAX, {});
    expect(await begin(throttle, { device: second })).toMatchObject({ isKnownDevice: true });
    await fail(throttle, FAILURES_MAX, { device });
    expect((await begin(throttle, { device })).isAllowed).toBe(false);
    expect((await begin(throttle, { device: second })).isAllowed).toBe(true);
  });

  test("another member's device cookie and a forged one are ignored", async () => {
    const throttle = makeThrottle(() => now.value);
    const device = throttle.rememberDevice(ALICE);
    await fail(throttle, FAILURES_MAX, {});
    for (const forged of [
      throttle.rememberDevice("mallory@alpha.example"),
      makeThrottle().rememberDevice(ALICE),
      `A${device.slice(1)}`,
      device.slice(0, -1),
      `${device}A`,
      "A".repeat(43),
      "",
    ]) {
      expect((await begin(throttle, { device: forged })).isAllowed, forged).toBe(false);
    }
    expect((await begin(throttle, { device })).isAllowed).toBe(true);
  });

  test("memory is bounded: the oldest entries go first, and all of them after a time", async () => {
    const map = new ExpiringMap<string>(2);
    for (const name of ["a", "b", "c"]) map.set(name, name, 0, 1_000);
    expect(["a", "b", "c"].map((name) => map.get(name, 999))).toEqual([null, "b", "c"]);
    map.set("b", "again", 500, 1_000);
    map.set("d", "d", 500, 1_000);
    expect(["b", "c", "d"].map((name) => map.get(name, 1_000))).toEqual(["again", null, "d"]);
    expect([map.endOf("b", 1_000), map.endOf("a", 1_000)]).toEqual([1_500, 0]);
    expect([map.take("b", 1_000), map.take("b", 1_000)]).toEqual(["again", null]);
    expect(map.get("d", 1_500)).toBeNull();
  });

  test("entries expire even if nobody asks for them", async () => {
    const map = new ExpiringMap<string>(10);
    for (const secret of ["first", "second"]) map.set("name", secret, 0, 20);
    expect([map.size, map.get("name", 0)]).toEqual([1, "second"]);
    const until = Date.now() + 10_000;
    while (map.size > 0 && Date.now() < until) await Bun.sleep(5);
    expect(map.size).toBe(0);
  });

  test("few passwords are hashed at a time, in order, and a failed one frees its place", async () => {
    const turns = new ConcurrencyLimit({ atOnce: 2, waitingMax: 3 });
    const order: number[] = [];
    let running = 0;
    let most = 0;
    const works = Array.from({ length: 6 }, (_, index) =>
      turns.take(async () => {
        running += 1;
        most = Math.max(most, running);
        await Promise.resolve();
        order.push(index);
        running -= 1;
        if (index === 1) throw new Error("a failure");
      }),
    );
    expect(turns.isFull).toBe(true);
    const results = await Promise.allSettled(works);
    expect(results.map(({ status }) => status)).toEqual(
      [0, 1, 2, 3, 4, 5].map((index) => (index === 1 ? "rejected" : "fulfilled")),
    );
    expect(most).toBe(2);
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
    expect(turns.isFull).toBe(false);
  });

  test("simultaneous attempts cannot exceed the limit of the queue", async () => {
    const attempt = { isAllowed: true, isKnownDevice: false, takeBack: () => {} };
    const services = {
      throttle: { begin: () => attempt },
      failedSignIns: { count: () => {} },
      // Each waits for the storage.
      members: { findForSignIn: () => Bun.sleep(10).then(() => null) },
    } as unknown as ConsoleServices;
    const visit = { cookies: new Map(), address: "192.0.2.1", now: 0 } as unknown as Visit;
    const guess = { email: ALICE, password: PASSWORD, failure: { actor: null, action: "x" } };
    const results = await Promise.allSettled(
      Array.from({ length: 60 }, () => checkPassword(services, visit, guess as never)),
    );
    // Two are hashed and 50 wait.
    expect(results.filter(({ status }) => status === "rejected")).toHaveLength(8);
  });
});
