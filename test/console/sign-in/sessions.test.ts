/** Members see where they are signed in, and can end each session; each ends by itself in time. */
import { describe, expect, test } from "bun:test";
import { browserName } from "../../../src/console/pages/sign-in/admission.ts";
import {
  ADD_PASSKEY_MS_MAX,
  type FindMember,
  SESSION_AGE_MS_MAX,
  SESSION_IDLE_MS_MAX,
  Sessions,
  SESSIONS_PER_MEMBER_MAX,
} from "../../../src/console/server/sessions/sessions.ts";
import type { Account } from "../../../src/domain/member/member.ts";
import { query } from "../../kit/setup.ts";
import {
  ALICE,
  isIn,
  openSessions,
  PASSWORD,
  rowsIn,
  startConsole,
  type TestConsole,
  type Visitor,
} from "../_console.ts";

const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const SAFARI =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1";

async function signInFrom(desk: TestConsole, userAgent: string, address: string): Promise<Visitor> {
  const visitor = desk.visitor();
  const headers = {
    "User-Agent": userAgent,
    "X-Forwarded-For": address,
    "X-Forwarded-Proto": "https",
  };
  await visitor.get("/sign-in", headers);
  const { location } = await visitor.post(
    "/sign-in",
    { email: ALICE, password: PASSWORD },
    headers,
  );
  expect(location).toBe("/");
  return visitor;
}

/** The rows of the list, as a reader sees them. */
function rowsOf(html: string): string[] {
  const list = html.slice(html.indexOf("Browsers in which you are signed in"));
  return rowsIn(list).map(({ text }) => text);
}

/** The form's address in the row with this text. */
function endOf(html: string, text: string): string {
  const row = rowsIn(html).find((one) => one.text.includes(text));
  return /action="([^"]+)"/.exec(row?.html ?? "")?.[1] ?? "";
}

test("the list names browser, address and times, and marks the one that asks", async () => {
  const desk = await startConsole({ config: { trustedProxies: ["127.0.0.1"] } });
  const { visitor } = await desk.signUp("alpha", ALICE);
  await signInFrom(desk, FIREFOX, "203.0.113.7");
  await signInFrom(desk, '<script>"\u00e9', "203.0.113.8");
  const { text } = await visitor.get("/account");
  expect(text).not.toContain("<script>&");
  const rows = rowsOf(text);
  expect(rows).toHaveLength(3);
  const own = rows.find((row) => row.includes("This browser"));
  expect(own).toContain("127.0.0.1");
  const firefox = rows.find((row) => row.includes("Firefox on Linux"));
  expect(firefox).toContain("203.0.113.7");
  expect(firefox).toContain("ago");
  expect(firefox).not.toContain("This browser");
});

test("each can be ended, only by a form; the others continue", async () => {
  const desk = await startConsole({ config: { trustedProxies: ["127.0.0.1"] } });
  const { visitor } = await desk.signUp("alpha", ALICE);
  const firefox = await signInFrom(desk, FIREFOX, "203.0.113.7");
  const safari = await signInFrom(desk, SAFARI, "203.0.113.8");
  const { text } = await visitor.get("/account");
  const forwarded = { "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9" };
  const ended = await visitor.post(endOf(text, "Safari on iPhone"), {}, forwarded);
  expect(ended.location).toBe("/account?done=ended");
  expect((await visitor.get("/account?done=ended")).text).toContain('class="notice good"');
  expect(await Promise.all([visitor, firefox, safari].map(isIn))).toEqual([true, true, false]);
  const again = await visitor.post(endOf(text, "Safari on iPhone"));
  expect(again.location, "a second time").toBe("/account?done=ended");
  const sql = "SELECT detail, client FROM audit WHERE action = 'member.session_ended'";
  expect(query(desk.dataDir, sql)).toEqual([
    { detail: "Safari on iPhone, 203.0.113.8", client: "203.0.113.9" },
  ]);
  await visitor.post(endOf(text, "This browser"));
  expect(await isIn(visitor)).toBe(false);
});

describe("a browser is called", () => {
  test.each([
    [FIREFOX, "Firefox on Linux"],
    [SAFARI, "Safari on iPhone"],
    [
      "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
      "Edge on Windows",
    ],
    [
      "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
      "Chrome on macOS",
    ],
    [
      "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
      "Chrome on Android",
    ],
    ["curl/8.5.0", "curl/8.5.0"],
    [null, "Unknown browser"],
    ["x".repeat(500), `${"x".repeat(59)}…`],
  ])("%j: %s", (userAgent, name) => {
    expect(browserName(userAgent)).toBe(name);
  });
});

describe("a session", () => {
  const account = { id: "01M", email: ALICE, signed_out_at: 0, passkeys: 0 } as Account;
  const beginning = { passkeyId: null, browser: "Firefox on Linux", address: "192.0.2.1" };
  const sessionsOf = async (find: FindMember = () => account) =>
    new Sessions(await openSessions(), find);

  test("an idle session ends, even while an export checks it", async () => {
    const sessions = await sessionsOf();
    const used = await sessions.start(account, beginning, 1_000);
    const last = 1_000 + SESSION_IDLE_MS_MAX;
    expect(await sessions.find(used, last)).toMatchObject({ email: ALICE });
    expect(await sessions.find(used, last + SESSION_IDLE_MS_MAX + 1)).toBe(null);
    expect(await sessions.find(used, last), "it is gone for good").toBe(null);
    const asked = await sessions.start(account, beginning, 1_000);
    expect(await sessions.holds(asked, last)).toBe(true);
    const [kept] = await sessions.list(account.id, last);
    expect(kept?.seenAt, "an export is not a use").toBe(1_000);
    expect(await sessions.holds(asked, last + 1)).toBe(false);
    expect(await sessions.find(asked, last)).toBe(null);
    expect(await sessions.holds("unknown", 1_000)).toBe(false);
  });

  test("a session in constant use ends, too", async () => {
    const sessions = await sessionsOf();
    const token = await sessions.start(account, beginning, 0);
    const step = SESSION_IDLE_MS_MAX / 2;
    for (let at = step; at <= SESSION_AGE_MS_MAX; at += step) {
      expect(await sessions.find(token, at)).not.toBe(null);
    }
    expect(await sessions.find(token, SESSION_AGE_MS_MAX + 1)).toBe(null);
  });

  test("ten minutes after the sign-in a password no longer suffices to add a required passkey", async () => {
    const sessions = await sessionsOf(() => ({ ...account, passkeys_required: true }));
    const token = await sessions.start(account, beginning, 0);
    const found = await sessions.find(token, ADD_PASSKEY_MS_MAX);
    expect(found).toMatchObject({ mustAddPasskey: true });
    expect(await sessions.find(token, ADD_PASSKEY_MS_MAX + 1)).toBeNull();
  });

  test("a member has at most 20: one more ends the least recently used", async () => {
    const sessions = await sessionsOf((id) => ({ ...account, id }));
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

  test("a token has 256 random bits and is stored only as a hash", async () => {
    const sessions = await sessionsOf();
    const starts = Array.from({ length: 100 }, () => sessions.start(account, beginning, 0));
    const tokens = new Set(await Promise.all(starts));
    expect(tokens.size).toBe(100);
    for (const token of tokens) expect(Buffer.from(token, "base64url").length).toBe(32);
    expect(await sessions.find("", 0)).toBe(null);
  });
});
