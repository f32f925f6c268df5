/** An admin takes a member's password and passkeys away at once, when somebody else may have them. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { cli } from "../_cli.ts";
import { query } from "../_setup.ts";
import { SoftwareKey } from "./_authenticator.ts";
import { ALICE, isIn, OTHER_PASSWORD, PASSWORD, signIn, startNamedConsole } from "./_console.ts";
import { addPasskey, passkeySignIn } from "./_passkeys.ts";

setDefaultTimeout(30_000);

test("a reset with --lock leaves neither password nor passkey, until its link is used", async () => {
  const desk = await startNamedConsole();
  const { visitor } = await desk.signUp("alpha", ALICE);
  const key = await SoftwareKey.make(desk.url);
  await addPasskey(visitor, key);
  const args = ["desk", "reset", "alpha", ALICE, "--lock", "--data", desk.dataDir];
  const { code, stdout, stderr } = await cli(args);
  expect([code, stderr]).toEqual([0, expect.stringContaining("password and passkeys")]);
  expect(await isIn(visitor)).toBe(false);
  expect((await signIn(desk.visitor())).status).toBe(422);
  expect((await passkeySignIn(desk.visitor(), key)).status).toBe(422);
  const path = new URL(stdout.trim()).pathname;
  const again = desk.visitor();
  expect((await again.get(path)).text).toContain("Choose another password");
  const old = await again.post(path, { password: PASSWORD });
  expect([old.status, old.text.includes("That is your old password.")]).toEqual([422, true]);
  expect((await again.post(path, { password: OTHER_PASSWORD })).location).toBe("/");
  expect(await isIn(again)).toBe(true);
  expect(query(desk.dataDir, "SELECT detail FROM audit WHERE action = 'member.reset'")).toEqual([
    { detail: "the earlier password and passkeys stopped working at once" },
  ]);
});
