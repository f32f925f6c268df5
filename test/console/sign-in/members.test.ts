/** Members invite and remove others, by HTTP alone: what the pages say, and whom they obey. */
import { describe, expect, test } from "bun:test";
import { signal } from "../../kit/setup.ts";
import { SoftwareKey } from "./_authenticator.ts";
import {
  ALICE,
  auditOf,
  decoded,
  inDatabase,
  isIn,
  OTHER_PASSWORD,
  PASSWORD,
  rowsIn,
  seen,
  signIn,
  startConsole,
  startSignedIn,
  type TestConsole,
  type Visitor,
} from "../_console.ts";
import { confirmation, startWithPasskey } from "./_passkeys.ts";

const BOB = "bob@alpha.example";

/** Newest first, as `actor action subject`. */
const audited = async (desk: TestConsole) =>
  (await auditOf(desk)).map(({ actor, action, subject }) => `${actor} ${action} ${subject}`);

/** What the list says of each member, from the top. */
async function rowsOf(visitor: Visitor): Promise<string[]> {
  const { status, text } = await visitor.get("/members");
  expect(status).toBe(200);
  return rowsIn(text).map((row) => row.text);
}

/** Fills in the form that the page shows, as it is but for these fields. */
async function invite(visitor: Visitor, fields: Record<string, string> = {}) {
  const { text } = await visitor.get("/members/invite");
  const copy = /name="copy" value="([^"]+)"/.exec(text)?.[1] ?? "";
  const sent = { copy, email: BOB, role: "manager", current: PASSWORD };
  return visitor.post("/members/invite", { ...sent, ...fields });
}

const linkIn = (text: string) => /<code id="link">([^<]+)<\/code>/.exec(text)?.[1] ?? null;

const idOf = async (desk: TestConsole, email: string) =>
  (await desk.members.list("alpha")).find((member) => member.email === email)?.id ?? "";

async function remove(desk: TestConsole, visitor: Visitor, email: string, current = PASSWORD) {
  const path = `/members/${await idOf(desk, email)}/remove`;
  await visitor.get(path);
  return visitor.post(path, { current });
}

const rolesOf = async (desk: TestConsole) =>
  (await desk.members.list("alpha")).map(({ email, role }) => `${email} ${role}`);

async function changeRole(
  desk: TestConsole,
  visitor: Visitor,
  email: string,
  fields: Record<string, string>,
) {
  const path = `/members/${await idOf(desk, email)}/role`;
  await visitor.get(path);
  return visitor.post(path, { current: PASSWORD, ...fields });
}

describe("the list", () => {
  test("has the desk's members with how and when they signed in, and open invitations", async () => {
    const { app: desk, visitor } = await startSignedIn();
    await desk.signUp("beta", "carol@beta.example");
    await desk.members.invite("alpha", BOB, undefined, { role: "viewer" });
    await desk.members.invite("alpha", "zoe@alpha.example");
    const sql = "UPDATE invitations SET expires_at = 1 WHERE member_id = ?";
    await inDatabase(desk, async (db) => db.run(sql, [await idOf(desk, "zoe@alpha.example")]));
    const [alice, bob, zoe, ...others] = await rowsOf(visitor);
    expect(alice).toMatch(
      /^alice@alpha.example You Manager Active password \d+ s ago \d+ s ago Account$/,
    );
    expect(bob).toMatch(/^bob@alpha.example Viewer Invited link expires in 24 h – – – New link/);
    expect(zoe).toContain("Link expired");
    expect(others).toEqual([]);
    const { text } = await visitor.get("/members");
    expect(text, "oneself").not.toContain(`/members/${await idOf(desk, ALICE)}/remove`);
  });

  test("shows that a member who was reset has to use a link", async () => {
    const { app: desk, visitor } = await startSignedIn();
    await desk.signUp("alpha", BOB);
    await desk.members.reset("alpha", BOB, { lock: true });
    expect((await rowsOf(visitor))[1]).toContain("Must use a link");
  });
});

describe("inviting", () => {
  test("requires the password, and shows a link for the new member once", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const made = await invite(visitor, { email: "Bob@Alpha.example" });
    expect([made.status, made.headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(seen(made.text)).toContain("shown only once");
    expect((await audited(desk))[0]).toBe(`${ALICE} member.invited ${BOB}`);
    const link = linkIn(made.text) ?? "";
    expect(link).toStartWith(`${desk.url}/join/`);
    for (const page of ["/members", `/members/invite?member=${await idOf(desk, BOB)}`]) {
      const { text: shown } = await visitor.get(page);
      expect([shown.includes(BOB), shown.includes("/join/")]).toEqual([true, false]);
    }

    const bob = desk.visitor();
    const path = new URL(link).pathname;
    expect((await bob.get(path)).text).toContain("Join desk alpha");
    expect((await bob.post(path, { password: OTHER_PASSWORD })).location).toBe("/");
    expect(await isIn(bob)).toBe(true);
    expect((await rowsOf(bob))[1]).toStartWith(`${BOB} You`);
  });

  test("with a wrong password, no passkey or an invalid address invites nobody", async () => {
    const { app: desk, visitor } = await startSignedIn();
    await desk.signUp("beta", "carol@beta.example");
    const before = await desk.members.list("alpha");
    for (const [fields, problem] of [
      [{ current: "" }, "Wrong password"],
      [{ current: "not the password" }, "Wrong password"],
      [{ current: "", response: "null" }, "not one of your passkeys"],
      [{ role: "" }, "Choose the member's role"],
      [{ role: "owner" }, "Choose the member's role"],
      [{ email: "" }, "An email address has"],
      [{ email: "<b>bob" }, "An email address has"],
      [{ email: ALICE }, "is already a member"],
      [{ email: "carol@beta.example" }, "cannot be invited"],
    ] as const) {
      const { status, text } = await invite(visitor, fields);
      const answer = [status, linkIn(text), text.includes(problem), text.includes("<b>bob")];
      expect([fields, ...answer]).toEqual([fields, 422, null, true, false]);
      expect(text, "what was typed").not.toContain("not the password");
    }
    expect(await desk.members.list("alpha")).toEqual(before);
    const failures = (await audited(desk)).filter((line) => line.includes("confirmation_failed"));
    expect(failures).toEqual(Array(2).fill(`${ALICE} member.confirmation_failed ${ALICE}`));
  });

  test("a form that is sent twice makes one link; inviting again replaces it", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const both = await Promise.all([
      invite(visitor, { copy: "one copy" }),
      invite(visitor, { copy: "one copy" }),
    ]);
    const [link, again] = both.map(({ text }) => linkIn(text) ?? "");
    expect(again).toBe(link ?? "");
    expect(
      (await audited(desk)).filter((line) => line === `${ALICE} member.invited ${BOB}`),
    ).toHaveLength(1);
    const { text } = await visitor.get("/members");
    const path = decoded(/href="(\/members\/invite\?[^"]+)"/.exec(text)?.[1] ?? "");
    expect((await visitor.get(path)).text).toContain(`value="${BOB}"`);
    const replaced = await invite(visitor);
    expect(seen(replaced.text)).toContain("The earlier link no longer works");
    const opened = async (url: string | null) =>
      (await desk.visitor().get(new URL(url ?? "").pathname)).status;
    expect(await opened(link ?? null)).toBe(410);
    expect(await opened(linkIn(replaced.text))).toBe(200);
  });

  test("a form that is sent again with another address shows no link without the password", async () => {
    const { visitor } = await startSignedIn();
    const link = linkIn((await invite(visitor, { copy: "one copy" })).text);
    const carol = { copy: "one copy", email: "carol@alpha.example" };
    const refused = await invite(visitor, { ...carol, current: "" });
    expect([refused.status, linkIn(refused.text)]).toEqual([422, null]);
    expect([null, link]).not.toContain(linkIn((await invite(visitor, carol)).text));
  });

  test("a passkey confirms it, once", async () => {
    const { desk, visitor, key } = await startWithPasskey();
    await visitor.get("/members/invite");
    const confirmed = await confirmation(visitor, key);
    const fields = { current: "", ...confirmed };
    expect(linkIn((await invite(visitor, fields)).text)).not.toBeNull();
    expect((await invite(visitor, { ...fields, email: "eve@alpha.example" })).status).toBe(422);
    const strangers = new SoftwareKey(desk.url);
    const forged = await confirmation(visitor, strangers);
    expect((await invite(visitor, { current: "", ...forged })).status).toBe(422);
    await inDatabase(desk, (db) =>
      db.run("UPDATE members SET password_hash = NULL WHERE email = ?", [ALICE]),
    );
    const { text } = await visitor.get("/members/invite");
    expect([text.includes('id="current"'), text.includes("data-confirm")]).toEqual([false, true]);
    expect((await invite(visitor)).status, "the password of before").toBe(422);
  });
});

describe("removing", () => {
  test("ends the member's sessions at once, and leaves the keys, as the page says", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const { visitor: bob } = await desk.signUp("alpha", BOB);
    const { text } = await visitor.get(`/members/${await idOf(desk, BOB)}/remove`);
    expect(seen(text)).toContain("Their sessions end at once");
    expect(seen(text)).toContain("keys that they created keep working");
    for (const wrong of ["", "not the password"]) {
      expect((await remove(desk, visitor, BOB, wrong)).status).toBe(422);
    }
    expect(await isIn(bob)).toBe(true);
    const removed = await remove(desk, visitor, BOB);
    expect(removed.location).toBe("/members");
    expect(await isIn(bob)).toBe(false);
    expect((await signIn(bob, { email: BOB })).status).toBe(422);
    expect((await audited(desk))[0]).toBe(`${ALICE} member.removed ${BOB}`);
    expect(await rowsOf(visitor)).toHaveLength(1);
    expect((await desk.post(signal)).status).toBe(201);
    expect(linkIn((await invite(visitor)).text), "invited again").not.toBeNull();
  });

  test("an invitation is withdrawn with its link", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const path = new URL(linkIn((await invite(visitor)).text) ?? "").pathname;
    const page = await visitor.get(`/members/${await idOf(desk, BOB)}/remove`);
    expect(seen(page.text)).toContain("link stops working");
    expect((await remove(desk, visitor, BOB)).location).toBe("/members");
    expect((await desk.visitor().get(path)).status).toBe(410);
  });
});

test.each(["/members/invite", "/members/:id/role", "/members/:id/remove"])(
  "a session that ends while the password is checked changes nothing: %s",
  async (form) => {
    const { app: desk, visitor } = await startSignedIn();
    await desk.members.invite("alpha", BOB);
    // Checking it takes long enough to sign out.
    const hash = await Bun.password.hash(PASSWORD, { algorithm: "argon2id", timeCost: 6 });
    await inDatabase(desk, (db) => db.run("UPDATE members SET password_hash = ?", [hash]));
    const path = form.replace(":id", await idOf(desk, BOB));
    await visitor.get(path);
    const fields = { email: "carol@alpha.example", role: "viewer", current: PASSWORD };
    const sent = visitor.post(path, fields);
    await Bun.sleep(100);
    expect((await visitor.post("/sign-out")).location).toBe("/sign-in");
    expect((await sent).location).toStartWith("/sign-in");
    expect(await rolesOf(desk)).toEqual([`${ALICE} manager`, `${BOB} manager`]);
  },
);

describe("roles", () => {
  test("a viewer is invited, joins, and sees the desk; the new link keeps the role", async () => {
    const { app: desk, visitor } = await startSignedIn();
    await invite(visitor, { role: "viewer" });
    const form = await visitor.get(`/members/invite?member=${await idOf(desk, BOB)}`);
    expect(form.text).toContain('<option value="viewer" selected>');
    const link = linkIn((await invite(visitor, { role: "viewer" })).text) ?? "";
    const bob = desk.visitor();
    const path = new URL(link).pathname;
    await bob.get(path);
    expect((await bob.post(path, { password: OTHER_PASSWORD })).location).toBe("/");
    expect((await rowsOf(bob))[1]).toContain("Viewer Active password");
    expect(seen((await bob.get("/account")).text)).toContain("RoleViewer");
    expect((await audited(desk)).filter((line) => line.includes("invited"))).toHaveLength(3);
  });

  test("a copy of the form that is sent again with another role makes another link", async () => {
    const { app: desk, visitor } = await startSignedIn();
    await invite(visitor, { copy: "one copy", role: "manager" });
    await invite(visitor, { copy: "one copy", role: "viewer" });
    expect(await rolesOf(desk)).toEqual([`${ALICE} manager`, `${BOB} viewer`]);
  });

  test("a change requires the password, and counts from the next request of open sessions", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const { visitor: bob } = await desk.signUp("alpha", BOB);
    await bob.get("/keys/new");
    for (const fields of [{ current: "not the password" }, { current: "" }]) {
      expect((await changeRole(desk, visitor, BOB, { role: "viewer", ...fields })).status).toBe(
        422,
      );
    }
    expect((await changeRole(desk, visitor, BOB, { role: "owner" })).status).toBe(422);
    expect((await bob.post("/keys", { label: "one" })).status).toBe(303);
    expect((await changeRole(desk, visitor, BOB, { role: "viewer" })).location).toBe("/members");
    expect((await bob.post("/keys", { label: "two" })).status).toBe(403);
    expect(await isIn(bob)).toBe(true);
    expect(
      (await auditOf(desk))
        .slice(0, 1)
        .map(({ actor, action, subject, detail }) => [actor, action, subject, detail]),
    ).toEqual([[ALICE, "member.role_changed", BOB, "to viewer"]]);
    expect(seen((await bob.get("/audit")).text)).toContain(`changed the role of ${BOB} to viewer`);
    expect((await changeRole(desk, visitor, BOB, { role: "manager" })).location).toBe("/members");
    expect((await bob.post("/keys", { label: "three" })).status).toBe(303);
    expect((await desk.registry.listKeys("alpha")).map(({ label }) => label)).toEqual([
      null,
      "one",
      "three",
    ]);
  });

  test("a viewer changes their own password, and signs out", async () => {
    const { app: desk } = await startSignedIn();
    const { visitor: bob } = await desk.signUp("alpha", BOB, "viewer");
    await bob.get("/account");
    const fields = { current: PASSWORD, new: OTHER_PASSWORD };
    expect((await bob.post("/account/password", fields)).location).toStartWith("/account");
    await bob.get("/account");
    expect((await bob.post("/account/sign-out-everywhere")).location).toStartWith("/account");
    await bob.get("/account");
    expect((await bob.post("/sign-out")).location).toBe("/sign-in");
    expect((await signIn(bob, { email: BOB, password: OTHER_PASSWORD })).location).toBe("/");
  });

  test("nobody changes their own role, and two who demote each other leave a manager", async () => {
    const desk = await startConsole();
    const { visitor: alice } = await desk.signUp("alpha", ALICE);
    const own = await changeRole(desk, alice, ALICE, { role: "viewer" });
    expect([own.status, seen(own.text).includes("You cannot change your own role")]).toEqual([
      422,
      true,
    ]);
    const { visitor: bob } = await desk.signUp("alpha", BOB);
    await Promise.all([
      changeRole(desk, alice, BOB, { role: "viewer" }),
      changeRole(desk, bob, ALICE, { role: "viewer" }),
    ]);
    const roles = (await desk.members.list("alpha")).map(({ role }) => role);
    expect(roles.toSorted()).toEqual(["manager", "viewer"]);
  });
});

test("if two members remove each other at once, one stays", async () => {
  const desk = await startConsole();
  const { visitor: alice } = await desk.signUp("alpha", ALICE);
  const { visitor: bob } = await desk.signUp("alpha", BOB);
  const [ofAlice, ofBob] = [await idOf(desk, ALICE), await idOf(desk, BOB)];
  await alice.get("/members/invite");
  await bob.get("/members/invite");
  await Promise.all([
    alice.post(`/members/${ofBob}/remove`, { current: PASSWORD }),
    bob.post(`/members/${ofAlice}/remove`, { current: PASSWORD }),
  ]);
  expect(await desk.members.list("alpha")).toHaveLength(1);
});
