/** A desk that requires passkeys: what a password still opens there, and what it does not. */
import { expect, test } from "bun:test";
import type { PublicKeyCredentialCreationOptionsJSON } from "@simplewebauthn/server";
import { cli } from "../../kit/cli.ts";
import { query } from "../../kit/setup.ts";
import { SoftwareKey } from "./_authenticator.ts";
import {
  ALICE,
  isIn,
  OTHER_PASSWORD,
  PASSWORD,
  signIn,
  startConsole,
  startSignedIn,
  startNamedConsole,
  type TestConsole,
  type Visitor,
} from "../_console.ts";
import { optionsOf, passkeySignIn, removePasskey, startWithPasskey } from "./_passkeys.ts";

async function require(desk: TestConsole, isRequired = true): Promise<void> {
  await desk.registry.requirePasskeys("alpha", isRequired);
}

/** On the page that asks for a passkey. */
async function addRequired(visitor: Visitor, key: SoftwareKey) {
  await visitor.get("/passkey");
  const options = await optionsOf<PublicKeyCredentialCreationOptionsJSON>(
    visitor,
    "/passkey/options",
  );
  return visitor.post("/passkey", { response: JSON.stringify(await key.create(options)) });
}

test("a password leads only to the page that adds a passkey, until one is added", async () => {
  const desk = await startNamedConsole();
  await desk.signUp("alpha", ALICE);
  await require(desk);
  const visitor = desk.visitor();
  expect((await signIn(visitor)).location).toBe("/");
  expect((await visitor.get("/keys")).location).toBe("/passkey");
  const shown = await visitor.get("/passkey");
  expect([shown.status, shown.text.includes("data-passkey")]).toEqual([200, true]);
  const key = new SoftwareKey(desk.url);
  expect((await addRequired(visitor, key)).location).toBe("/");
  expect(await isIn(visitor)).toBe(true);
  expect((await visitor.get("/passkey")).location).toBe("/");
  expect((await signIn(desk.visitor())).status, "the password from now on").toBe(422);
  expect((await passkeySignIn(desk.visitor(), key)).location).toBe("/audit");
});

test("signing out is possible before the passkey is added", async () => {
  const desk = await startNamedConsole();
  const { visitor } = await desk.signUp("alpha", ALICE);
  await require(desk);
  await visitor.get("/passkey");
  expect((await visitor.post("/sign-out")).location).toBe("/sign-in");
  expect((await visitor.get("/passkey")).location).toBe("/sign-in?next=%2Fpasskey");
});

test("a member with a passkey is signed out of sessions that a password began, and the password stops working", async () => {
  const { desk, visitor, key } = await startWithPasskey();
  const withKey = desk.visitor();
  await passkeySignIn(withKey, key);
  await require(desk);
  expect(await isIn(visitor)).toBe(false);
  expect(await isIn(withKey)).toBe(true);
  expect((await signIn(desk.visitor())).status).toBe(422);

  const account = await withKey.get("/account");
  expect(account.text).not.toContain("/account/password");
  const changed = await withKey.post("/account/password", { new: OTHER_PASSWORD });
  expect(changed.status).toBe(422);
  expect((await removePasskey(withKey, key.id)).status, "the password is no proof").toBe(422);
  const last = await removePasskey(withKey, key.id, key);
  expect([last.status, last.text.includes("your desk requires one")]).toEqual([422, true]);

  await require(desk, false);
  expect((await signIn(desk.visitor())).location).toBe("/");
});

test("another desk is not affected", async () => {
  const desk = await startNamedConsole();
  await desk.signUp("beta", "bob@beta.example");
  await require(desk);
  expect((await signIn(desk.visitor(), { email: "bob@beta.example" })).location).toBe("/");
});

test("links offer only a passkey", async () => {
  const desk = await startNamedConsole();
  await require(desk);
  const { token } = await desk.members.invite("alpha", ALICE);
  const visitor = desk.visitor();
  const shown = await visitor.get(`/join/${token}`);
  expect(shown.text).not.toContain('type="password"');
  const refused = await visitor.post(`/join/${token}`, { password: PASSWORD });
  expect([refused.status, refused.text.includes("requires a passkey")]).toEqual([422, true]);
  const key = new SoftwareKey(desk.url);
  const options = await optionsOf<PublicKeyCredentialCreationOptionsJSON>(
    visitor,
    `/join/${token}/passkey/options`,
  );
  const response = JSON.stringify(await key.create(options));
  expect((await visitor.post(`/join/${token}/passkey`, { response })).location).toBe("/");
  expect(await isIn(visitor)).toBe(true);
});

test("only members who must add a passkey can use that page, because it asks for no password", async () => {
  const desk = await startNamedConsole();
  const { visitor } = await desk.signUp("alpha", ALICE);
  expect((await visitor.get("/passkey")).location).toBe("/");
  await visitor.get("/account");
  expect((await visitor.post("/passkey/options")).status).toBe(422);
  expect((await visitor.post("/passkey", { response: "{}" })).location).toBe("/");
  expect((await desk.visitor().get("/passkey")).location).toBe("/sign-in?next=%2Fpasskey");
});

test("the pages say what is missing if the console has no host name", async () => {
  const { app: desk, visitor } = await startSignedIn();
  await require(desk);
  expect((await visitor.get("/passkey")).text).toContain("--console-url");
  const { token } = await desk.members.invite("alpha", "bob@alpha.example");
  expect((await desk.visitor().get(`/join/${token}`)).text).toContain("--console-url");
});

test("the command lists members without a passkey, and each change is audited once", async () => {
  const desk = await startConsole();
  await desk.signUp("alpha", ALICE);
  const run = (...args: string[]) =>
    cli(["desk", "require-passkeys", "alpha", ...args, "--data", desk.dataDir]);
  const required = await run();
  expect(required).toMatchObject({ code: 0, stdout: "" });
  expect(required.stderr).toContain(`${ALICE} has no passkey yet`);
  expect(required.stderr).toContain("restart serve with --console-url");
  await run();
  const { stdout } = await cli(["desk", "list", "--data", desk.dataDir]);
  expect(stdout).toMatch(/alpha .* required/);
  expect((await run("--off")).stderr).toContain("passwords or passkeys");
  expect(
    query(desk.dataDir, "SELECT action FROM audit WHERE action LIKE 'desk.passkeys%' ORDER BY id"),
  ).toEqual([{ action: "desk.passkeys_required" }, { action: "desk.passkeys_optional" }]);
  const { stdout: audit } = await cli(["audit", "--data", desk.dataDir]);
  expect(audit).toMatch(/admin .* required passkeys of the desk's members/);
});
