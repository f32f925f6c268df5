/** Getting in, by HTTP alone: what holds without any browser's help, and where a browser's word is asked for. */
import { describe, expect, test } from "bun:test";
import { ExpiringMap } from "../../src/console/web/expiring-map.ts";
import { localPath } from "../../src/console/web/safe-redirect.ts";
import {
  ADD_PASSKEY_MS_MAX,
  type FindMember,
  SESSION_AGE_MS_MAX,
  SESSION_IDLE_MS_MAX,
  Sessions,
  SESSIONS_PER_MEMBER_MAX,
} from "../../src/console/web/sessions.ts";
import { securityHeaders } from "../../src/console/web/responses.ts";
import {
  type Attempt,
  FAILURES_MAX,
  type Guess,
  NETWORK_FAILURES_MAX,
  SIGN_INS_MAX,
  SignInThrottle,
  THROTTLE_WINDOW_MS,
} from "../../src/console/web/throttle.ts";
import { checkPassword, ConcurrencyLimit } from "../../src/console/sign-in/credentials.ts";
import type { ConsoleServices } from "../../src/console/web/services.ts";
import { cookieNames, type Visit } from "../../src/console/web/visit.ts";
import type { Account } from "../../src/domain/member.ts";
import { HOUR_MS } from "../../src/domain/time.ts";
import { openForDamage, signal } from "../_setup.ts";
import {
  ALICE,
  auditOf,
  holds,
  inDatabase,
  isIn,
  openSessions,
  OTHER_PASSWORD,
  type PageAnswer,
  PASSWORD,
  signIn,
  startConsole,
  startSignedIn,
  type TestConsole,
  type Visitor,
} from "./_console.ts";

function isSignedIn(answer: PageAnswer): boolean {
  return answer.status === 303 && answer.location === "/";
}

/** Oldest first, as `action: detail`. */
const audited = (desk: TestConsole) =>
  auditOf(desk)
    .map(({ action, detail }) => `${action}: ${detail}`)
    .toReversed();

describe("signing in", () => {
  test("the right password opens the console, with a cookie that no script and no other site gets", async () => {
    const desk = await startConsole();
    await desk.signUp("alpha", ALICE);
    const visitor = desk.visitor();
    const answer = await signIn(visitor, { email: "Alice@Alpha.Example" });
    expect(isSignedIn(answer)).toBe(true);
    expect(await isIn(visitor)).toBe(true);

    const set = new Map(
      answer.headers.getSetCookie().map((line) => {
        const [pair = "", ...attributes] = line.split("; ");
        return [pair.split("=")[0], attributes.map((one) => one.toLowerCase()).toSorted()];
      }),
    );
    const bare = ["httponly", "path=/", "samesite=strict", "secure"];
    expect(set.get(cookieNames.session)).toEqual(bare);
    expect(set.get(cookieNames.device)?.filter((one) => !one.startsWith("max-age"))).toEqual(bare);
    expect(visitor.cookies.has(cookieNames.visitor), "the cookie of before").toBe(false);
    expect(audited(desk).at(-1)).toBe("member.signed_in: with a password");
  });

  test("a wrong password and an unknown address get the same answer; the wrong one is in the audit", async () => {
    const desk = await startConsole();
    await desk.signUp("alpha", ALICE);
    const before = audited(desk).length;
    const wrong = await signIn(desk.visitor(), { password: OTHER_PASSWORD });
    const unknown = await signIn(desk.visitor(), { email: "nobody@alpha.example" });
    const invited = "invited@alpha.example";
    desk.members.invite("alpha", invited);
    const open = await signIn(desk.visitor(), { email: invited });

    expect(wrong.status).toBe(422);
    expect(wrong.text).toContain('role="alert"');
    for (const [answer, email] of [
      [unknown, "nobody@alpha.example"],
      [open, invited],
    ] as const) {
      expect(answer.status).toBe(wrong.status);
      expect(sameForAll(answer, email)).toBe(sameForAll(wrong, ALICE));
      expect([...answer.headers.keys()].toSorted()).toEqual([...wrong.headers.keys()].toSorted());
    }
    expect(audited(desk).slice(before)).toEqual([
      "member.sign_in_failed: with a password",
      "member.invited: null",
      "member.sign_in_failed: with a password",
    ]);
  });

  test("what was typed comes back as text, and never the password", async () => {
    const desk = await startConsole();
    const email = '"><script>alert(1)</script>@x';
    const answer = await signIn(desk.visitor(), { email, password: "<b>hunter2</b>" });
    expect(answer.text).not.toContain("<script>alert");
    expect(answer.text).toContain("&quot;>&lt;script>alert(1)");
    expect(answer.text).not.toContain("hunter2");
  });

  test("with a field left out nothing is looked at, nor counted", async () => {
    const desk = await startConsole();
    await desk.signUp("alpha", ALICE);
    const visitor = desk.visitor();
    for (let sent = 0; sent <= FAILURES_MAX; sent += 1) {
      expect((await signIn(visitor, { password: "" })).status).toBe(422);
    }
    expect(isSignedIn(await signIn(visitor))).toBe(true);
  });

  test("a session that was planted is not taken over", async () => {
    const desk = await startConsole();
    await desk.signUp("alpha", ALICE);
    const visitor = desk.visitor();
    const planted = "p".repeat(43);
    visitor.cookies.set(cookieNames.session, planted);
    await visitor.get("/sign-in");
    visitor.cookies.set(cookieNames.session, planted);
    expect(isSignedIn(await visitor.post("/sign-in", { email: ALICE, password: PASSWORD }))).toBe(
      true,
    );
    expect(visitor.cookies.get(cookieNames.session)).not.toBe(planted);
    expect(await holds(desk, planted)).toBe(false);
  });

  test("signing in again, or as somebody else, ends the session that there was", async () => {
    const desk = await startConsole();
    await desk.signUp("alpha", "mallory@alpha.example");
    const { visitor } = await desk.signUp("alpha", ALICE);
    const first = visitor.cookies.get(cookieNames.session) ?? "";
    await visitor.get("/account");
    const { location } = await visitor.post("/sign-in", {
      email: "mallory@alpha.example",
      password: PASSWORD,
    });
    expect(location).toBe("/");
    expect(visitor.cookies.get(cookieNames.session)).not.toBe(first);
    expect((await visitor.get("/account")).text).toContain("mallory@alpha.example");
    expect(await holds(desk, first)).toBe(false);
  });

  test("signing out ends the session, not only the cookie", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const token = visitor.cookies.get(cookieNames.session);
    await visitor.get("/account");
    expect((await visitor.post("/sign-out")).location).toBe("/sign-in");
    expect(visitor.cookies.has(cookieNames.session)).toBe(false);
    expect(await holds(desk, token)).toBe(false);
  });

  test("a stranger gets no page of members and sends none of their forms", async () => {
    const desk = await startConsole();
    const { body } = await desk.post(signal);
    const key = `/keys/${desk.keyId}`;
    const sent = `/signals/${String(body["id"])}`;
    const stranger = desk.visitor();
    await stranger.get("/sign-in");
    const pages = [
      [
        "/",
        "/home/live",
        "/start",
        "/start/state",
        "/audit",
        "/account",
        "/activity",
        "/activity/live",
      ],
      ["/signals", "/signals/newer", "/signals/export?format=csv", sent, `${sent}/metadata`],
      ["/members", "/members/invite", "/members/x/remove"],
      ["/keys", "/keys/new", key, `${key}/key`, `${key}/rotate`, `${key}/revoke`],
    ].flat();
    for (const path of pages) {
      const { status, location } = await stranger.get(path);
      const next = path === "/" ? "" : `?next=${encodeURIComponent(path)}`;
      expect([path, status, location]).toEqual([path, 303, `/sign-in${next}`]);
    }
    const fields = { overlap: "1h", confirmation: desk.key.slice(-4) };
    for (const path of ["/keys", `${key}/rotate`, `${key}/revoke`]) {
      expect([path, (await stranger.post(path, fields)).status]).toEqual([path, 403]);
    }
    expect(desk.registry.listKeys("alpha")).toMatchObject([{ revoked_at: null }]);
  });

  test("who asked for a page comes back to it, and who is in already goes on", async () => {
    const { app: desk, visitor } = await startSignedIn();
    expect((await visitor.get("/sign-in?next=%2Faudit")).location).toBe("/audit");
    const other = desk.visitor();
    const { location } = await other.get("/audit?before=7");
    expect(location).toBe("/sign-in?next=%2Faudit%3Fbefore%3D7");
    const form = await other.get(location ?? "");
    expect(form.text).toContain('name="next" value="/audit?before=7"');
    const sent = await signIn(other, { next: "/audit?before=7" });
    expect(sent.location).toBe("/audit?before=7");
  });

  test.each([
    "https://evil.example/",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/.//evil.example",
    "/a/..//evil.example",
    "/%2e//evil.example",
    "javascript:alert(1)",
    "keys",
    "",
    "/\u0000",
    "/x\r\nSet-Cookie: a=b",
  ])("next %j leads nowhere else", async (next) => {
    expect(localPath(next)).toBe("/");
  });

  test.each([
    ["/keys", "/keys"],
    ["/keys/01ABC?x=1&y=//z", "/keys/01ABC?x=1&y=//z"],
    ["/a/../keys", "/keys"],
    ["/ä?ö", "/%C3%A4?%C3%B6"],
  ])("next %j is a page of ours", (next, path) => {
    expect(localPath(next)).toBe(path);
  });

  test("the form takes no next of another host", async () => {
    const desk = await startConsole();
    await desk.signUp("alpha", ALICE);
    const visitor = desk.visitor();
    const shown = await visitor.get("/sign-in?next=https%3A%2F%2Fevil.example");
    expect(shown.text).toContain('name="next" value="/"');
    expect(isSignedIn(await signIn(visitor, { next: "//evil.example" }))).toBe(true);
  });
});

/** Without what differs from one request to the next. */
function sameForAll({ text }: PageAnswer, email: string): string {
  return text
    .replaceAll(/name="csrf" value="[^"]+"/g, "")
    .replaceAll(`value="${email}"`, "value of the address");
}

describe("one-time links", () => {
  test("looking at one spends nothing, nor does a bad password; setting one spends it", async () => {
    const desk = await startConsole();
    const { token } = desk.members.invite("alpha", ALICE);
    const visitor = desk.visitor();
    for (let looked = 0; looked < 3; looked += 1) {
      const shown = await visitor.get(`/join/${token}`);
      expect(shown.status).toBe(200);
      expect(shown.text).toContain(ALICE);
      expect(shown.text).toContain('autocomplete="new-password"');
    }
    for (const password of ["short", "passwordpassword", ALICE + ALICE, ""]) {
      const refused = await visitor.post(`/join/${token}`, { password });
      expect([refused.status, refused.text.includes('role="alert"')]).toEqual([422, true]);
      if (password !== "") expect(refused.text).not.toContain(`value="${password}"`);
    }
    expect(isSignedIn(await visitor.post(`/join/${token}`, { password: PASSWORD }))).toBe(true);
    expect(await isIn(visitor)).toBe(true);
    expect(audited(desk).slice(-2)).toEqual([
      "member.joined: with a password",
      "member.signed_in: with a one-time link",
    ]);

    const late = desk.visitor();
    expect((await late.get(`/join/${token}`)).status).toBe(410);
    await late.get("/sign-in");
    expect((await late.post(`/join/${token}`, { password: OTHER_PASSWORD })).status).toBe(410);
    expect((await signIn(late, { password: OTHER_PASSWORD })).status).toBe(422);
    expect(isSignedIn(await signIn(late))).toBe(true);
  });

  test("an expired, an unknown, a spent and a voided one get one answer", async () => {
    const desk = await startConsole();
    const { token: voided } = desk.members.invite("alpha", ALICE);
    const { token: expired } = desk.members.invite("alpha", ALICE);
    const visitor = desk.visitor();
    expect((await visitor.get(`/join/${expired}`)).status).toBe(200);
    inDatabase(desk, (db) =>
      db.run("UPDATE invitations SET expires_at = ? WHERE spent_at IS NULL", [Date.now() - 1]),
    );
    const answers: PageAnswer[] = [];
    for (const token of [expired, voided, "A".repeat(43), "x", "%00", expired.slice(1)]) {
      answers.push(await visitor.get(`/join/${token}`));
      answers.push(await visitor.post(`/join/${token}`, { password: PASSWORD }));
    }
    for (const answer of answers) {
      expect(answer.status).toBe(410);
      expect(answer.text).toBe(answers[0]?.text ?? "");
      expect(answer.text).toContain("signalbox member invite");
      expect(answer.text).toContain("signalbox member reset");
    }
    expect(desk.members.list("alpha")[0]?.joined_at).toBe(null);
  });

  test("a reset ends the sessions at once; the old password works until the link is used", async () => {
    const { app: desk, visitor } = await startSignedIn();
    expect(await isIn(visitor)).toBe(true);
    const { token } = desk.members.reset("alpha", ALICE);
    expect(await isIn(visitor)).toBe(false);
    expect(isSignedIn(await signIn(visitor))).toBe(true);
    const other = desk.visitor();
    await other.get(`/join/${token}`);
    const old = await other.post(`/join/${token}`, { password: PASSWORD });
    expect([old.status, old.text.includes("That is your old password.")]).toEqual([422, true]);
    expect(isSignedIn(await other.post(`/join/${token}`, { password: OTHER_PASSWORD }))).toBe(true);
    expect(await isIn(visitor), "the session of the old password").toBe(false);
    expect((await signIn(desk.visitor())).status).toBe(422);
    expect(await isIn(other)).toBe(true);
  });
});

describe("requests that another site makes a browser send", () => {
  /** How a request differs from one of our own page. */
  const forged: [string, Record<string, string | null>, Record<string, string | null>][] = [
    ["without the token", { csrf: null }, {}],
    ["with an empty token", { csrf: "" }, {}],
    ["with a made-up token", { csrf: "A".repeat(43) }, {}],
    ["from another site", {}, { "Sec-Fetch-Site": "cross-site" }],
    ["from a neighbouring host", {}, { "Sec-Fetch-Site": "same-site" }],
    ["typed into the address bar", {}, { "Sec-Fetch-Site": "none" }],
    [
      "by an old browser, from another site",
      {},
      { "Sec-Fetch-Site": null, Origin: "https://evil.example" },
    ],
    ["by an old browser, from nowhere", {}, { "Sec-Fetch-Site": null, Origin: "null" }],
    ["by no browser", {}, { "Sec-Fetch-Site": null }],
  ];

  test("they are refused on every form, and nothing is done", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const { token, member: bob } = desk.members.invite("alpha", "bob@alpha.example");
    const forms: [string, Record<string, string>][] = [
      ["/account/password", { current: PASSWORD, new: OTHER_PASSWORD }],
      ["/account/passkeys/options", { current: PASSWORD, name: "x" }],
      ["/account/passkeys", { name: "x", response: "{}" }],
      ["/account/passkeys/x/remove", { current: PASSWORD }],
      ["/account/confirm/options", {}],
      ["/account/sessions/x/end", {}],
      ["/account/sign-out-everywhere", {}],
      ["/sign-out", {}],
      ["/members/invite", { email: "eve@alpha.example", current: PASSWORD }],
      [`/members/${bob.id}/remove`, { current: PASSWORD }],
      ["/keys", { label: "bot", expires: "never" }],
      [`/keys/${desk.keyId}/rotate`, { overlap: "1h" }],
      [`/keys/${desk.keyId}/revoke`, { confirmation: desk.key.slice(-4) }],
      ["/sign-in", { email: ALICE, password: PASSWORD }],
      ["/sign-in/passkey", { response: "{}" }],
      [`/join/${token}`, { password: PASSWORD }],
    ];
    const before = audited(desk);
    await visitor.get("/account");
    for (const [name, fields, headers] of forged) {
      for (const [path, form] of forms) {
        const { status } = await visitor.post(path, { ...form, ...fields }, headers);
        expect([name, path, status]).toEqual([name, path, 403]);
      }
    }
    expect(await isIn(visitor)).toBe(true);
    expect(audited(desk)).toEqual(before);
  });

  test("the token of somebody else, and the one of before signing in, are refused", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const { visitor: other } = await desk.signUp("alpha", "mallory@alpha.example");
    await visitor.get("/account");
    await other.get("/account");
    expect((await visitor.post("/sign-out", { csrf: other.csrfToken })).status).toBe(403);
    const third = desk.visitor();
    await third.get("/sign-in");
    const early = third.csrfToken;
    await signIn(third);
    expect((await third.post("/sign-out", { csrf: early })).status).toBe(403);
    expect(await isIn(third)).toBe(true);
  });

  test("a form that is sent after its session ended leads to the sign-in page and back", async () => {
    const { app: desk, visitor } = await startSignedIn();
    for (const [path, formPage] of [
      ["/account/password", "/account"],
      ["/keys", "/keys/new"],
      ["/keys/x/rotate", "/keys/x/rotate"],
    ] as const) {
      await signIn(visitor);
      await visitor.get("/account");
      const memberId = desk.members.list("alpha")[0]?.id ?? "";
      desk.members.signOutEverywhere({ memberId, client: null });
      const { status, text } = await visitor.post(path);
      expect([status, text.includes("You were signed out")]).toEqual([403, true]);
      expect(text).toContain(`/sign-in?next=${encodeURIComponent(formPage)}`);
      const foreign = await visitor.post(path, {}, { "Sec-Fetch-Site": "cross-site" });
      expect(foreign.text).toContain("came from another site");
    }
  });

  test("a member who is signed out before the change is made goes to the sign-in page, and nothing is changed", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const { member: bob } = desk.members.invite("alpha", "bob@alpha.example");
    const key = `/keys/${desk.keyId}`;
    const changes = () => [
      desk.registry.listKeys("alpha"),
      desk.members.list("alpha").map(({ email }) => email),
      audited(desk).filter((line) => !line.startsWith("member.signed_in:")),
    ];
    const before = changes();
    for (const [path, fields, formPage] of [
      ["/keys", { label: "late", expires: "never" }, "/keys/new"],
      [`${key}/rotate`, { overlap: "1h" }, `${key}/rotate`],
      [`${key}/revoke`, { confirmation: desk.key.slice(-4) }, `${key}/revoke`],
      ["/members/invite", { email: "eve@alpha.example", current: PASSWORD }, "/members/invite"],
      [`/members/${bob.id}/remove`, { current: PASSWORD }, `/members/${bob.id}/remove`],
      ["/account/sign-out-everywhere", {}, "/account"],
    ] as const) {
      expect([path, await sendAndSignOut(desk, visitor, path, fields)]).toEqual([
        path,
        `/sign-in?next=${encodeURIComponent(formPage)}`,
      ]);
      expect(changes()).toEqual(before);
    }
  });

  test("an old browser of our own page gets through", async () => {
    const { app: desk, visitor } = await startSignedIn();
    await visitor.get("/account");
    const headers = { "Sec-Fetch-Site": null, Origin: desk.url };
    expect((await visitor.post("/sign-out", {}, headers)).location).toBe("/sign-in");
  });
});

/**
 * Sends a form whose change waits for the database, signs its member out everywhere, and returns where the
 * answer leads. Waits longer each time that the member was out before the console had read the form.
 */
async function sendAndSignOut(
  desk: TestConsole,
  visitor: Visitor,
  path: string,
  fields: Record<string, string>,
): Promise<string | null> {
  const db = openForDamage(desk.dataDir);
  for (let waitMs = 50; waitMs < 3_000; waitMs *= 2) {
    await signIn(visitor);
    await visitor.get("/account");
    db.run("BEGIN IMMEDIATE");
    db.run("UPDATE members SET signed_out_at = signed_out_at + 1");
    const answered = visitor.post(path, fields);
    await Bun.sleep(waitMs);
    db.run("COMMIT");
    const answer = await answered;
    if (answer.status !== 403) return answer.location;
  }
  throw new Error(`${path} never waited for the database`);
}

function makeThrottle(clock?: () => number): SignInThrottle {
  return new SignInThrottle(crypto.getRandomValues(new Uint8Array(32)), clock);
}

function begin(throttle: SignInThrottle, guess: Partial<Guess>): Attempt {
  return throttle.begin({ email: ALICE, device: null, address: "192.0.2.1", ...guess });
}

function fail(throttle: SignInThrottle, times: number, guess: Partial<Guess>): void {
  for (let time = 0; time < times; time += 1) begin(throttle, guess);
}

describe("guessing", () => {
  test("strangers are stopped, whether the address is known or not, and a browser of the member is not", async () => {
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
      expect(limited.text).toContain('href="/sign-in?next=%2Fsignals%3Fsymbol%3Dbtc"');
      expect(limited.text).toMatch(/Too many failed attempts\. Try again in \d+ minutes/);
    }
    const failures = audited(desk).filter((line) => line.startsWith("member.sign_in_failed"));
    expect(failures.length, "what is refused unseen fills no audit").toBe(FAILURES_MAX);
    expect(isSignedIn(await signIn(honest))).toBe(true);
  });

  const START = Date.UTC(2026, 4, 1);
  const now = { value: START };

  test("a window begins with the first failure, and the next is allowed when it is over", () => {
    now.value = START;
    const throttle = makeThrottle(() => now.value);
    fail(throttle, FAILURES_MAX, {});
    now.value += 1_000;
    expect(begin(throttle, {})).toEqual({
      isAllowed: false,
      isSignIns: false,
      retryAt: START + THROTTLE_WINDOW_MS,
    });
    expect(begin(throttle, { email: ALICE.toUpperCase() }).isAllowed, "in capitals").toBe(false);
    expect(begin(throttle, { email: "bob@alpha.example" }).isAllowed, "another member").toBe(true);
    now.value = START + THROTTLE_WINDOW_MS;
    expect(begin(throttle, {}).isAllowed).toBe(true);
    fail(throttle, FAILURES_MAX, {});
    now.value -= HOUR_MS;
    expect(begin(throttle, {}).isAllowed, "after the clock was set back").toBe(true);
  });

  test("an attempt that succeeded is no failure, and forgives none before it", () => {
    const throttle = makeThrottle(() => now.value);
    for (let time = 0; time < 2 * FAILURES_MAX; time += 1) {
      const attempt = begin(throttle, {});
      expect(attempt.isAllowed).toBe(true);
      if (attempt.isAllowed) attempt.succeeded();
    }
    fail(throttle, FAILURES_MAX - 1, {});
    const right = begin(throttle, {});
    if (right.isAllowed) right.succeeded();
    fail(throttle, 1, {});
    expect(begin(throttle, {}).isAllowed).toBe(false);
  });

  test("a member signs in 30 times at most in a window, from wherever; each passkey likewise", () => {
    now.value = START;
    const throttle = makeThrottle(() => now.value);
    const device = throttle.rememberDevice(ALICE);
    for (let time = 0; time < SIGN_INS_MAX; time += 1) {
      const attempt = begin(throttle, time % 2 === 0 ? { device } : {});
      if (attempt.isAllowed) attempt.succeeded();
    }
    const retryAt = START + THROTTLE_WINDOW_MS;
    const limited = { isAllowed: false, retryAt, isSignIns: true } as const;
    expect(begin(throttle, {})).toEqual(limited);
    expect(begin(throttle, { device })).toEqual(limited);
    expect(begin(throttle, { email: "bob@alpha.example" }).isAllowed).toBe(true);
    for (let time = 0; time < SIGN_INS_MAX; time += 1) {
      expect(throttle.beginPasskeySession("one")).toBe(0);
    }
    expect(throttle.beginPasskeySession("one")).toBe(limited.retryAt);
    expect(throttle.beginPasskeySession("two")).toBe(0);
    now.value = limited.retryAt;
    expect(begin(throttle, {}).isAllowed).toBe(true);
    expect(throttle.beginPasskeySession("one")).toBe(0);
  });

  test("one who tries many members is stopped by their network", () => {
    const throttle = makeThrottle(() => now.value);
    for (let index = 0; index < NETWORK_FAILURES_MAX; index += 1) {
      const address = `2001:db8::${index.toString(16)}`;
      const attempt = begin(throttle, { email: `${index}@alpha.example`, address });
      expect(attempt.isAllowed).toBe(true);
    }
    for (const address of ["2001:db8::ffff", "2001:DB8:0:0:1:2:3:4", "2001:0db8:0000::1"]) {
      expect(begin(throttle, { address }).isAllowed, address).toBe(false);
    }
    for (const address of ["2001:db8:0:1::1", "::1", "192.0.2.1"]) {
      expect(begin(throttle, { address }).isAllowed, address).toBe(true);
    }
  });

  test("a known browser is counted for itself: others cannot stop it, nor it them", () => {
    const throttle = makeThrottle(() => now.value);
    const device = throttle.rememberDevice(ALICE);
    const second = throttle.rememberDevice(ALICE);
    fail(throttle, NETWORK_FAILURES_MAX + FAILURES_MAX, {});
    expect(begin(throttle, { device: second })).toMatchObject({ isKnownDevice: true });
    fail(throttle, FAILURES_MAX, { device });
    expect(begin(throttle, { device }).isAllowed).toBe(false);
    expect(begin(throttle, { device: second }).isAllowed).toBe(true);
  });

  test("a device cookie of somebody else, or one that was made up, is none", () => {
    const throttle = makeThrottle(() => now.value);
    const device = throttle.rememberDevice(ALICE);
    fail(throttle, FAILURES_MAX, {});
    for (const forged of [
      throttle.rememberDevice("mallory@alpha.example"),
      makeThrottle().rememberDevice(ALICE),
      `A${device.slice(1)}`,
      device.slice(0, -1),
      `${device}A`,
      "A".repeat(43),
      "",
    ]) {
      expect(begin(throttle, { device: forged }).isAllowed, forged).toBe(false);
    }
    expect(begin(throttle, { device }).isAllowed).toBe(true);
  });

  test("what is remembered is bounded: the oldest is forgotten first, and everything in time", () => {
    const map = new ExpiringMap<string>(1_000, 2);
    for (const name of ["a", "b", "c"]) map.set(name, name, 0);
    expect(["a", "b", "c"].map((name) => map.get(name, 999))).toEqual([null, "b", "c"]);
    map.set("b", "again", 500);
    map.set("d", "d", 500);
    expect(["b", "c", "d"].map((name) => map.get(name, 1_000))).toEqual(["again", null, "d"]);
    expect([map.endOf("b", 1_000), map.endOf("a", 1_000)]).toEqual([1_500, 0]);
    expect([map.take("b", 1_000), map.take("b", 1_000)]).toEqual(["again", null]);
    expect(map.get("d", 1_500)).toBeNull();
  });

  test("what is remembered leaves memory in time, also if nobody asks for it", async () => {
    const map = new ExpiringMap<string>(20, 10);
    for (const secret of ["first", "second"]) map.set("name", secret, 0);
    expect([map.size, map.get("name", 0)]).toEqual([1, "second"]);
    const until = Date.now() + 10_000;
    while (map.size > 0 && Date.now() < until) await Bun.sleep(5);
    expect(map.size).toBe(0);
  });

  test("passwords are hashed a few at a time, in turn, and one that fails makes room", async () => {
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

  test("strangers who come at once do not pass the limit of those who wait", async () => {
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

describe("sessions", () => {
  const account: Account = {
    id: "01M",
    desk: "alpha",
    desk_id: 1,
    email: ALICE,
    created_at: 0,
    joined_at: 0,
    removed_at: null,
    signed_out_at: 0,
    has_password: true,
    passkeys_required: false,
    passkeys: 0,
    link_expires_at: null,
    signed_in_at: null,
  };
  const beginning = { passkeyId: null, browser: "Firefox on Linux", address: "192.0.2.1" };
  const sessionsOf = (find: FindMember = () => account) => new Sessions(openSessions(), find);

  test("an unused session ends for good, also while an export asks whether it holds", async () => {
    const sessions = sessionsOf();
    const used = await sessions.start(account, beginning, 1_000);
    const last = 1_000 + SESSION_IDLE_MS_MAX;
    expect(await sessions.find(used, last)).toMatchObject({ email: ALICE });
    expect(await sessions.find(used, last + SESSION_IDLE_MS_MAX + 1)).toBe(null);
    expect(await sessions.find(used, last), "it is gone for good").toBe(null);
    const asked = await sessions.start(account, beginning, 1_000);
    expect(await sessions.holds(asked, last)).toBe(true);
    expect(await sessions.holds(asked, last + 1)).toBe(false);
    expect(await sessions.find(asked, last)).toBe(null);
    expect(await sessions.holds("unknown", 1_000)).toBe(false);
  });

  test("one that is used all the time ends, too", async () => {
    const sessions = sessionsOf();
    const token = await sessions.start(account, beginning, 0);
    const step = SESSION_IDLE_MS_MAX / 2;
    for (let at = step; at <= SESSION_AGE_MS_MAX; at += step) {
      expect(await sessions.find(token, at)).not.toBe(null);
    }
    expect(await sessions.find(token, SESSION_AGE_MS_MAX + 1)).toBe(null);
  });

  test("ten minutes after the sign-in a password no longer suffices to add a required passkey", async () => {
    const sessions = sessionsOf(() => ({ ...account, passkeys_required: true }));
    const token = await sessions.start(account, beginning, 0);
    const found = await sessions.find(token, ADD_PASSKEY_MS_MAX);
    expect(found).toMatchObject({ mustAddPasskey: true });
    expect(await sessions.find(token, ADD_PASSKEY_MS_MAX + 1)).toBeNull();
  });

  test("each member has 20 at most: one more ends the member's own that was used least recently", async () => {
    const sessions = sessionsOf((id) => ({ ...account, id }));
    const colleague = await sessions.start({ id: "02M", signed_out_at: 0 }, beginning, 0);
    const tokens: string[] = [];
    for (let index = 0; index < SESSIONS_PER_MEMBER_MAX; index += 1) {
      tokens.push(await sessions.start(account, beginning, index));
    }
    const isLive = async (token: string) => (await sessions.find(token, 60_000)) !== null;
    expect(await isLive(tokens[0] ?? "")).toBe(true);
    tokens.push(await sessions.start(account, beginning, 120_000));
    const areLive = await Promise.all(tokens.map(isLive));
    expect(tokens.filter((_, index) => areLive[index] !== true)).toEqual([tokens[1] ?? ""]);
    expect(await isLive(colleague)).toBe(true);
    expect(await sessions.list("01M", 120_000)).toHaveLength(SESSIONS_PER_MEMBER_MAX);
  });

  test("a token is 256 random bits, and is not kept as it is", async () => {
    const sessions = sessionsOf();
    const starts = Array.from({ length: 100 }, () => sessions.start(account, beginning, 0));
    const tokens = new Set(await Promise.all(starts));
    expect(tokens.size).toBe(100);
    for (const token of tokens) expect(Buffer.from(token, "base64url").length).toBe(32);
    expect(await sessions.find("", 0)).toBe(null);
  });
});

/** As `Headers` has them. */
const security = Object.fromEntries(
  Object.entries(securityHeaders).map(([name, value]) => [name.toLowerCase(), value]),
);

describe("what every answer has, and the log has not", () => {
  test("the security headers are on pages, redirects, refusals, scripts and failures", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const account = await visitor.get("/account");
    const script = /src="(\/assets\/[^"]+)"/.exec(account.text)?.[1] ?? "";
    const stranger = desk.visitor();
    const shown = await stranger.get("/sign-in");
    const answers: [number, PageAnswer][] = [
      [200, account],
      [200, await visitor.get("/keys/new")],
      [200, await visitor.get(`/keys/${desk.keyId}/rotate`)],
      [200, await visitor.get("/audit?before=3")],
      [422, await visitor.post("/keys", { label: "\u0001" })],
      [200, shown],
      [200, await stranger.get(script)],
      [303, await stranger.get("/account")],
      [404, await stranger.get("/nothing/here")],
      [404, await stranger.get("/assets/nothing.js")],
      [410, await stranger.get("/join/x")],
      [403, await stranger.post("/sign-in", { csrf: "x" })],
      [422, await stranger.post("/sign-in/passkey", { response: "null" })],
      [422, await stranger.post("/sign-in/passkey/options")],
      [413, await stranger.post("/sign-in", { email: "x".repeat(100_000) })],
      [303, await visitor.post("/sign-out")],
    ];
    for (const [status, answer] of answers) {
      expect(answer.status).toBe(status);
      expect(answer.headers.toJSON()).toMatchObject(security);
      const isAsset = answer.headers.get("content-type")?.startsWith("text/javascript") === true;
      if (!isAsset && status !== 404) expect(answer.headers.get("cache-control")).toBe("no-store");
    }
  });

  test("HEAD is refused wherever there is a page, and does nothing", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const { token } = desk.members.invite("alpha", "bob@alpha.example");
    const cookies = new Map(visitor.cookies);
    for (const [path, allow] of [
      ["/", "GET"],
      ["/sign-in", "GET, POST"],
      [`/join/${token}`, "GET, POST"],
      ["/keys", "GET, POST"],
      ["/keys/nothing/key", "GET"],
      ["/signals/export?format=csv", "GET"],
    ] as const) {
      const { status, headers, text } = await visitor.head(path);
      expect({ path, status, allow: headers.get("allow"), text }).toEqual({
        path,
        status: 405,
        allow,
        text: "",
      });
      expect(headers.toJSON()).toMatchObject(security);
    }
    expect(visitor.cookies).toEqual(cookies);
    expect((await visitor.head("/nothing/here")).status).toBe(404);
    const script = /src="(\/assets\/[^"]+)"/.exec((await visitor.get("/keys")).text)?.[1] ?? "";
    expect((await visitor.head(script)).status).toBe(200);
  });

  test("no password, link, cookie or token is in the log", async () => {
    const desk = await startConsole({ logLevel: "debug" });
    const { token } = desk.members.invite("alpha", ALICE);
    const visitor = desk.visitor();
    const secrets = [token, PASSWORD, OTHER_PASSWORD];
    const keep = (): void => {
      secrets.push(visitor.csrfToken, ...visitor.cookies.values());
    };
    await visitor.get(`/join/${token}`);
    keep();
    await visitor.post(`/join/${token}`, { password: PASSWORD });
    await visitor.get("/account");
    keep();
    await visitor.post("/account/password", { current: PASSWORD, new: OTHER_PASSWORD });
    await visitor.get("/account");
    keep();
    await visitor.post("/sign-out");
    await signIn(visitor, { password: PASSWORD });
    await visitor.post("/sign-in/passkey", { response: `{"id":"${PASSWORD}"}` });
    keep();
    await signIn(visitor, { password: OTHER_PASSWORD });
    keep();
    const log = JSON.stringify(desk.log);
    expect(log).toContain("console answered");
    expect(secrets.length).toBeGreaterThan(12);
    for (const secret of secrets) expect(log).not.toContain(secret);
  });
});
