/** Forms of another session, and forms whose session has ended. */
import { expect, test } from "bun:test";
import { openForDamage } from "../../kit/setup.ts";
import {
  isIn,
  PASSWORD,
  signIn,
  startSignedIn,
  type TestConsole,
  type Visitor,
  auditLines,
} from "../_console.ts";

test("another member's token and the one from before signing in are refused", async () => {
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
    const memberId = (await desk.members.list("alpha"))[0]?.id ?? "";
    await desk.members.signOutEverywhere({ memberId, client: null });
    const { status, text } = await visitor.post(path, { label: desk.key });
    expect([status, text.includes("You were signed out")]).toEqual([403, true]);
    expect(text, "a key that was pasted as a label").not.toContain(desk.key);
    const returnPath = `${formPage}?label=sbk_%E2%80%A6`;
    expect(text).toContain(`/sign-in?next=${encodeURIComponent(returnPath)}`);
    const foreign = await visitor.post(path, {}, { "Sec-Fetch-Site": "cross-site" });
    expect(foreign.text).toContain("came from another site");
  }
});

test("a member who is signed out before the change is redirected to the sign-in page, and nothing changes", async () => {
  const { app: desk, visitor } = await startSignedIn();
  const { member: bob } = await desk.members.invite("alpha", "bob@alpha.example");
  const key = `/keys/${desk.keyId}`;
  const changes = async () => [
    await desk.registry.listKeys("alpha"),
    (await desk.members.list("alpha")).map(({ email, role }) => `${email} ${role}`),
    (await auditLines(desk)).filter((line) => !line.startsWith("member.signed_in:")),
  ];
  const before = await changes();
  for (const [path, fields, formPage] of [
    ["/keys", { label: "late", expires: "never" }, "/keys/new?label=late&expires=never"],
    [`${key}/rotate`, { overlap: "1h" }, `${key}/rotate?overlap=1h`],
    [`${key}/revoke`, { confirmation: desk.key.slice(-4) }, `${key}/revoke`],
    // Never a password.
    [
      "/members/invite",
      { email: "eve@alpha.example", role: "viewer", current: PASSWORD },
      "/members/invite?email=eve%40alpha.example&role=viewer",
    ],
    [
      `/members/${bob.id}/role`,
      { role: "viewer", current: PASSWORD },
      `/members/${bob.id}/role?role=viewer`,
    ],
    [`/members/${bob.id}/remove`, { current: PASSWORD }, `/members/${bob.id}/remove`],
    ["/account/sign-out-everywhere", {}, "/account"],
  ] as const) {
    expect([path, await sendAndSignOut(desk, visitor, path, fields)]).toEqual([
      path,
      `/sign-in?next=${encodeURIComponent(formPage)}`,
    ]);
    expect(await changes()).toEqual(before);
  }
});

test("an old browser on our own page is accepted", async () => {
  const { app: desk, visitor } = await startSignedIn();
  await visitor.get("/account");
  const headers = { "Sec-Fetch-Site": null, Origin: desk.url };
  expect((await visitor.post("/sign-out", {}, headers)).location).toBe("/sign-in");
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
