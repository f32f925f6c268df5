/** Getting in with a password, by HTTP alone. */
import { expect, test } from "bun:test";
import { localPath } from "../../../src/console/server/links.ts";
import { FAILURES_MAX } from "../../../src/console/server/limits/throttle.ts";
import { cookieNames } from "../../../src/console/server/visit.ts";
import { sharedByFile } from "../../kit/setup.ts";
import { SoftwareKey } from "./_authenticator.ts";
import {
  ALICE,
  holds,
  isIn,
  OTHER_PASSWORD,
  type PageAnswer,
  PASSWORD,
  signIn,
  startConsole,
  startNamedConsole,
  startSignedIn,
  isSignedIn,
  auditLines,
} from "../_console.ts";
import { addPasskey, passkeySignIn } from "./_passkeys.ts";

const withAlice = sharedByFile(async () => {
  const desk = await startConsole();
  await desk.signUp("alpha", ALICE);
  return desk;
});

test("the right password opens the console and sets a cookie that scripts and other sites cannot read", async () => {
  const desk = withAlice();
  const visitor = desk.visitor();
  const answer = await signIn(visitor, { email: " Alice@Alpha.Example " });
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
  expect((await auditLines(desk)).at(-1)).toBe(
    "member.signed_in: with a password, in a browser not seen before",
  );
});

test("a wrong password and an unknown address get the same answer; the wrong one is in the audit", async () => {
  const desk = withAlice();
  const before = (await auditLines(desk)).length;
  const wrong = await signIn(desk.visitor(), { password: OTHER_PASSWORD });
  const unknown = await signIn(desk.visitor(), { email: "nobody@alpha.example" });
  const invited = "invited@alpha.example";
  await desk.members.invite("alpha", invited);
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
  expect((await auditLines(desk)).slice(before)).toEqual([
    "member.sign_in_failed: with a password",
    "member.invited: as a manager",
    "member.sign_in_failed: with a password",
  ]);
});

test("only the right password or passkey reveals that the desk is archived; the attempt is audited and logged", async () => {
  const desk = await startNamedConsole();
  const { visitor } = await desk.signUp("alpha", ALICE);
  const key = new SoftwareKey(desk.url);
  await addPasskey(visitor, key);
  await desk.registry.archiveDesk("alpha", true);
  const before = (await auditLines(desk)).length;
  const archived = "Your desk is archived: ask your administrator.";
  const [right, byPasskey] = [await signIn(visitor), await passkeySignIn(visitor, key)];
  for (const { status, text } of [right, byPasskey]) {
    expect([status, text.includes(archived)]).toEqual([422, true]);
  }
  expect(await isIn(visitor)).toBe(false);
  expect((await auditLines(desk)).slice(before)).toEqual([
    "member.sign_in_failed: with the right password, but the desk is archived",
    'member.sign_in_failed: with the passkey "Laptop", but the desk is archived',
  ]);
  const wrong = await signIn(desk.visitor(), { password: OTHER_PASSWORD });
  const unknown = await signIn(desk.visitor(), { email: "nobody@alpha.example" });
  expect(sameForAll(wrong, ALICE)).toBe(sameForAll(unknown, "nobody@alpha.example"));
  expect(wrong.text).not.toContain("archived");
  await passkeySignIn(visitor, key, { isForged: true });
  expect((await auditLines(desk)).at(-1)).toBe(
    'member.sign_in_failed: with a bad signature of the passkey "Laptop"',
  );
  await desk.registry.archiveDesk("alpha", false);
  expect(isSignedIn(await signIn(visitor))).toBe(true);
  await desk.stop();
  expect(desk.log.filter(({ archived_desk }) => archived_desk !== undefined)).toMatchObject([
    { archived_desk: 2, wrong_password: 1, unknown_address: 1, refused_passkey: 1 },
  ]);
});

test("typed values are shown again as text, and never the password", async () => {
  const desk = withAlice();
  const email = '"><script>alert(1)</script>@x';
  const answer = await signIn(desk.visitor(), { email, password: "<b>hunter2</b>" });
  expect(answer.text).not.toContain("<script>alert");
  expect(answer.text).toContain("&quot;>&lt;script>alert(1)");
  expect(answer.text).not.toContain("hunter2");
});

test("a form with a missing field is neither checked nor counted", async () => {
  const desk = withAlice();
  const visitor = desk.visitor();
  for (let sent = 0; sent <= FAILURES_MAX; sent += 1) {
    expect((await signIn(visitor, { password: "" })).status).toBe(422);
  }
  expect(isSignedIn(await signIn(visitor))).toBe(true);
});

test("a planted session cookie is not adopted", async () => {
  const desk = withAlice();
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

test("signing in again or as another member ends the previous session", async () => {
  const desk = withAlice();
  const visitor = desk.visitor();
  await signIn(visitor);
  await desk.signUp("alpha", "mallory@alpha.example");
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

test("signing in returns to the requested page, at once if already signed in", async () => {
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
])("next %j does not lead to another site", async (next) => {
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

test("the form accepts no next on another host", async () => {
  const desk = withAlice();
  const visitor = desk.visitor();
  const shown = await visitor.get("/sign-in?next=https%3A%2F%2Fevil.example");
  expect(shown.text).toContain('name="next" value="/"');
  expect(isSignedIn(await signIn(visitor, { next: "//evil.example" }))).toBe(true);
});

/** Without what differs from one request to the next. */
function sameForAll({ text }: PageAnswer, email: string): string {
  return text
    .replaceAll(/name="csrf" value="[^"]+"/g, "")
    .replaceAll(`value="${email}"`, "value of the address");
}
