/** Who sits at a browser that was left open removes no passkey; and a removed passkey leaves nobody signed in. */
import { expect, test } from "bun:test";
import { SoftwareKey } from "./_authenticator.ts";
import { auditLines, isIn, type TestConsole } from "../_console.ts";
import { addPasskey, passkeySignIn, removePasskey, startWithPasskey } from "./_passkeys.ts";

const lastAudited = async (desk: TestConsole) => (await auditLines(desk)).at(-1) ?? "";

test("without the password or a passkey nothing is removed", async () => {
  const { desk, visitor, key } = await startWithPasskey();
  const page = await visitor.get(`/account/passkeys/${key.id}/remove`);
  expect([page.status, page.text.includes("Laptop")]).toEqual([200, true]);
  const path = `/account/passkeys/${key.id}/remove`;
  expect((await visitor.post(path)).status).toBe(422);
  expect((await visitor.post(path, { response: "null" })).status).toBe(422);
  expect((await removePasskey(visitor, key.id, "not the password")).status).toBe(422);
  expect(await lastAudited(desk)).toContain("typed a wrong password");
  expect((await removePasskey(visitor, key.id, key, { isForged: true })).status).toBe(422);
  expect(await lastAudited(desk)).toContain('with a bad signature of the passkey "Laptop"');
  expect((await passkeySignIn(desk.visitor(), key)).location).toBe("/audit");
});

test("another member's passkey and a challenge of the sign-in page are not accepted", async () => {
  const { desk, visitor, key } = await startWithPasskey();
  const { visitor: bob } = await desk.signUp("alpha", "bob@alpha.example");
  const bobs = new SoftwareKey(desk.url);
  await addPasskey(bob, bobs);
  expect((await removePasskey(visitor, key.id, bobs)).status).toBe(422);
  await visitor.get("/account");
  const { text } = await visitor.post("/sign-in/passkey/options");
  const { options } = JSON.parse(text) as { options: Parameters<SoftwareKey["get"]>[0] };
  const response = JSON.stringify(await key.get(options));
  const path = `/account/passkeys/${key.id}/remove`;
  expect((await visitor.post(path, { response })).status).toBe(422);
  expect((await passkeySignIn(desk.visitor(), key)).location).toBe("/audit");
});

test("sessions that began with it end; those of the password and other passkeys continue", async () => {
  const { desk, visitor, key } = await startWithPasskey();
  const other = new SoftwareKey(desk.url);
  await addPasskey(visitor, other, { name: "Phone" });
  const [withKey, withOther] = [desk.visitor(), desk.visitor()];
  await passkeySignIn(withKey, key);
  await passkeySignIn(withOther, other);
  expect((await removePasskey(withOther, key.id, other)).location).toBe("/account?done=removed");
  expect(await isIn(withKey)).toBe(false);
  expect(await isIn(withOther)).toBe(true);
  expect((await visitor.get("/account")).text).not.toContain("<bdi>Laptop</bdi>");
  expect((await removePasskey(withOther, other.id, other)).location).toBe("/account?done=removed");
  expect(await isIn(withOther), "of the passkey that it removed itself").toBe(false);
  expect(await isIn(visitor)).toBe(true);
});

test("a session that began with a passkey still does after signing out everywhere else", async () => {
  const { desk, visitor, key } = await startWithPasskey();
  const other = desk.visitor();
  await passkeySignIn(other, key);
  await other.get("/account");
  await other.post("/account/sign-out-everywhere");
  expect([await isIn(other), await isIn(visitor)]).toEqual([true, false]);
  await removePasskey(other, key.id);
  expect(await isIn(other)).toBe(false);
});
