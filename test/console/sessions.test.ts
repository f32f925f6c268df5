/** Members see where they are signed in, and can end each session. */
import { describe, expect, test } from "bun:test";
import { browserName } from "../../src/console/sign-in/admission.ts";
import { query } from "../_setup.ts";
import {
  ALICE,
  isIn,
  PASSWORD,
  startConsole,
  startSignedIn,
  type TestConsole,
  type Visitor,
} from "./_console.ts";

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
  const table = html.slice(html.indexOf("Browsers in which you are signed in"));
  return [...table.matchAll(/<tr><th scope="row"[^>]*>.*?<\/tr>/g)].map(([row]) =>
    row.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " "),
  );
}

/** The form's address in the row with this text. */
function endOf(html: string, text: string): string {
  const row = [...html.matchAll(/<tr><th scope="row"[^>]*>.*?<\/tr>/g)].find(([one]) =>
    one.includes(text),
  );
  return /action="([^"]+)"/.exec(row?.[0] ?? "")?.[1] ?? "";
}

test("the list names browser, address and times, and marks the one that asks", async () => {
  const desk = await startConsole({ config: { trustedProxies: ["127.0.0.1"] } });
  const { visitor } = await desk.signUp("alpha", ALICE, PASSWORD);
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

test("each can be ended, by a form alone; the others go on", async () => {
  const desk = await startConsole({ config: { trustedProxies: ["127.0.0.1"] } });
  const { visitor } = await desk.signUp("alpha", ALICE, PASSWORD);
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

test("nobody ends a session of another member", async () => {
  const { app: desk, visitor } = await startSignedIn();
  const other = desk.visitor();
  await other.get("/sign-in");
  await other.post("/sign-in", { email: ALICE, password: PASSWORD });
  const { visitor: bob } = await desk.signUp("alpha", "bob@alpha.example");
  const path = /\/account\/sessions\/[^/]+\/end/.exec((await visitor.get("/account")).text)?.[0];
  await bob.get("/account");
  await bob.post(path ?? "");
  expect(await isIn(other)).toBe(true);
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
