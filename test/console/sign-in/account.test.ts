/** What members do with their own account, by HTTP alone; their passkeys are made in software. */
import { describe, expect, test } from "bun:test";
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from "@simplewebauthn/server";
import { MINUTE_MS } from "../../../src/lib/text/time.ts";
import { cli } from "../../kit/cli.ts";
import { query } from "../../kit/setup.ts";
import { FAILURES_MAX } from "../../../src/console/server/limits/throttle.ts";
import { cookieNames } from "../../../src/console/server/visit.ts";
import { type Deviation, SoftwareKey } from "./_authenticator.ts";
import {
  addPasskey,
  confirmation,
  optionsOf,
  passkeySignIn,
  removePasskey,
  startWithPasskey,
} from "./_passkeys.ts";
import {
  ALICE,
  auditOf,
  holds,
  inDatabase,
  isIn,
  OTHER_PASSWORD,
  PASSWORD,
  signIn,
  startSignedIn,
  startNamedConsole,
  type TestConsole,
} from "../_console.ts";

/** Newest first, as `actor action: detail`. */
const audited = async (desk: TestConsole) =>
  (await auditOf(desk)).map(({ actor, action, detail }) => `${actor} ${action}: ${detail}`);

describe("the password", () => {
  test("changing it requires the current one, ends every other session, and renews this session's token", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const other = desk.visitor();
    await signIn(other);
    const token = visitor.cookies.get(cookieNames.session);
    await visitor.get("/account");
    for (const [current, password] of [
      ["not the password", OTHER_PASSWORD],
      ["", OTHER_PASSWORD],
      [PASSWORD, "short"],
      [PASSWORD, PASSWORD],
      [PASSWORD, ALICE + ALICE],
    ] as const) {
      const refused = await visitor.post("/account/password", { current, new: password });
      expect([refused.status, refused.text.includes('role="alert"')]).toEqual([422, true]);
    }
    expect(await isIn(other)).toBe(true);
    expect(await audited(desk)).toContain(
      `${ALICE} member.confirmation_failed: typed a wrong password`,
    );

    await visitor.get("/account");
    const done = await visitor.post("/account/password", {
      current: PASSWORD,
      new: OTHER_PASSWORD,
    });
    expect(done.location).toBe("/account?done=password");
    expect((await visitor.get("/account?done=password")).text).toContain('class="notice good"');
    expect(visitor.cookies.get(cookieNames.session)).not.toBe(token);
    expect(await isIn(other)).toBe(false);
    expect(await holds(desk, token), "the token of before").toBe(false);
    expect((await signIn(other)).status).toBe(422);
    expect((await signIn(other, { password: OTHER_PASSWORD })).status).toBe(303);
    expect(await audited(desk)).toContain(`${ALICE} member.password_changed: null`);
  });

  test("guessing it in an open session is limited", async () => {
    const { visitor } = await (await startNamedConsole()).signUp("alpha", ALICE);
    await visitor.get("/account");
    const guesses = await Promise.all(
      Array.from({ length: FAILURES_MAX + 2 }, (_, index) =>
        visitor.post("/account/password", { current: `guess ${index}`, new: OTHER_PASSWORD }),
      ),
    );
    expect(guesses.filter(({ status }) => status === 422).length).toBe(FAILURES_MAX);
    const last = await visitor.post("/account/password", {
      current: PASSWORD,
      new: OTHER_PASSWORD,
    });
    expect(last.status).toBe(429);
    expect(Number(last.headers.get("retry-after"))).toBeGreaterThan(0);
    const options = await visitor.post("/account/passkeys/options", {
      current: PASSWORD,
      name: "x",
    });
    expect(options.status, "by the other form").toBe(429);
    expect(JSON.parse(options.text)).toEqual({ problem: expect.stringContaining("Try again in") });
  });
});

test("signing out everywhere else ends all other sessions and is audited", async () => {
  const { app: desk, visitor } = await startSignedIn();
  const { visitor: colleague } = await desk.signUp("alpha", "bob@alpha.example");
  const others = [desk.visitor(), desk.visitor()];
  for (const other of others) await signIn(other);
  const token = visitor.cookies.get(cookieNames.session);
  const shown = await visitor.get("/account");
  expect(shown.text.match(/This browser</g)?.length).toBe(1);
  expect(shown.text.match(/\/account\/sessions\/[^/]+\/end/g)?.length).toBe(2);

  const done = await visitor.post("/account/sign-out-everywhere");
  expect(done.location).toBe("/account?done=elsewhere");
  expect((await visitor.get("/account")).text).not.toContain("/account/sessions/");
  for (const other of others) expect(await isIn(other)).toBe(false);
  expect(await holds(desk, token), "a copy of this browser's cookie").toBe(false);
  expect(await isIn(colleague)).toBe(true);
  expect((await audited(desk))[0]).toBe(`${ALICE} member.signed_out_everywhere: null`);
});

describe("passkeys", () => {
  test("are not offered if the console's URL has an IP address, and the page says why", async () => {
    const { app: desk, visitor } = await startSignedIn();
    const account = await visitor.get("/account");
    expect(account.text).toContain("--console-url");
    for (const text of [account.text, (await desk.visitor().get("/sign-in")).text]) {
      expect(text).not.toContain("data-passkey");
      expect(text).not.toContain("webauthn");
    }
    const options = await visitor.post("/account/passkeys/options", {
      current: PASSWORD,
      name: "x",
    });
    expect(options.status).toBe(422);
  });

  test("can be added with the password, used to sign in, and removed", async () => {
    const desk = await startNamedConsole();
    const { visitor } = await desk.signUp("alpha", ALICE);
    const key = new SoftwareKey(desk.url);
    expect((await visitor.get("/account")).text).toContain("data-passkey");
    const wrong = { current: "not the password", name: "Laptop" };
    expect((await visitor.post("/account/passkeys/options", wrong)).status).toBe(422);
    const nameless = { current: PASSWORD, name: "" };
    expect((await visitor.post("/account/passkeys/options", nameless)).status).toBe(422);
    expect((await addPasskey(visitor, key)).location).toBe("/account?done=passkey");
    expect((await audited(desk))[0]).toBe(`${ALICE} member.passkey_added: "Laptop"`);

    const other = desk.visitor();
    const planted = "p".repeat(43);
    other.cookies.set(cookieNames.session, planted);
    const done = await passkeySignIn(other, key);
    expect(done.location).toBe("/audit");
    expect(other.cookies.get(cookieNames.session)).not.toBe(planted);
    expect((await audited(desk))[0]).toBe(
      `${ALICE} member.signed_in: with the passkey "Laptop", in a browser not seen before`,
    );
    const account = await other.get("/account");
    expect(account.text).toContain("<bdi>Laptop</bdi>");
    expect(account.text).not.toContain('<span class="none">never');

    const removed = await removePasskey(visitor, key.id);
    expect(removed.location).toBe("/account?done=removed");
    expect((await audited(desk))[0]).toBe(`${ALICE} member.passkey_removed: "Laptop"`);
    expect((await passkeySignIn(desk.visitor(), key)).status).toBe(422);
    expect((await removePasskey(visitor, key.id)).status).toBe(404);
  });

  test("another member's passkey gets the answer of an unknown one, in the same desk or not", async () => {
    const { desk, key } = await startWithPasskey();
    for (const [name, email] of [
      ["alpha", "bob@alpha.example"],
      ["beta", "carol@beta.example"],
    ] as const) {
      const { visitor: stranger } = await desk.signUp(name, email);
      expect((await stranger.get("/account")).text).not.toContain(key.id);
      expect((await removePasskey(stranger, key.id)).status).toBe(404);
      const again = await addPasskey(stranger, key);
      expect([again.status, again.text.includes("registered already")]).toEqual([422, true]);
    }
    expect((await passkeySignIn(desk.visitor(), key)).location).toBe("/audit");
  });

  test("a challenge can be answered once, by the browser that got it, from our origin, with user verification", async () => {
    const { desk, key } = await startWithPasskey();

    const victim = desk.visitor();
    await victim.get("/sign-in");
    const path = "/sign-in/passkey/options";
    const options = await optionsOf<PublicKeyCredentialRequestOptionsJSON>(victim, path);
    const inFiveMinutes = { timeout: 5 * MINUTE_MS };
    expect(options).toMatchObject({
      rpId: "localhost",
      userVerification: "required",
      ...inFiveMinutes,
    });
    expect(options.allowCredentials ?? []).toEqual([]);
    const response = JSON.stringify(await key.get(options));
    const thief = desk.visitor();
    await thief.get("/sign-in");
    expect((await thief.post("/sign-in/passkey", { response })).status, "elsewhere").toBe(422);
    await optionsOf(thief, path);
    expect((await thief.post("/sign-in/passkey", { response })).status, "elsewhere").toBe(422);
    const copy = new Map(victim.cookies);
    const { csrfToken } = victim;
    expect((await victim.post("/sign-in/passkey", { response })).location).toBe("/");
    thief.cookies.clear();
    for (const [name, value] of copy) thief.cookies.set(name, value);
    const replay = { csrf: csrfToken, response };
    expect((await thief.post("/sign-in/passkey", replay)).status, "once more").toBe(422);

    for (const deviation of [
      { origin: "https://evil.example" },
      { isUserVerified: false },
      { userHandle: Buffer.from("01SOMEBODYELSE").toString("base64url") },
      { userHandle: "" },
      { isForged: true },
      { challenge: "A".repeat(43) },
    ] satisfies Deviation[]) {
      const before = (await audited(desk)).length;
      const refused = await passkeySignIn(desk.visitor(), key, deviation);
      expect([deviation, refused.status]).toEqual([deviation, 422]);
      expect((await audited(desk)).length).toBe(before + 1);
      expect((await audited(desk))[0]).toStartWith(
        "null member.sign_in_failed: with a bad signature",
      );
    }
    for (const hostile of ["", "null", "[]", "{}", '"x"', '{"id":1}', `{"id":"${key.id}"}`, "{"]) {
      const somebody = desk.visitor();
      await somebody.get("/sign-in");
      await optionsOf(somebody, path);
      expect((await somebody.post("/sign-in/passkey", { response: hostile })).status).toBe(422);
    }
    expect((await passkeySignIn(desk.visitor(), key)).location).toBe("/audit");
  });

  test("a counter that does not increase is refused and audited", async () => {
    const { desk, key } = await startWithPasskey();
    expect((await passkeySignIn(desk.visitor(), key, { counter: 7 })).location).toBe("/audit");
    for (const counter of [7, 6, 0]) {
      expect((await passkeySignIn(desk.visitor(), key, { counter })).status).toBe(422);
      expect((await audited(desk))[0]).toContain("it may have been copied");
    }
    expect((await passkeySignIn(desk.visitor(), key, { counter: 8 })).location).toBe("/audit");
  });

  test("a registration is accepted once, and only for its own challenge", async () => {
    const desk = await startNamedConsole();
    const { visitor } = await desk.signUp("alpha", ALICE);
    const key = new SoftwareKey(desk.url);
    for (const deviation of [
      { origin: "https://evil.example" },
      { isUserVerified: false },
      { challenge: "A".repeat(43) },
      { attestation: "maker" },
    ] satisfies Deviation[]) {
      const refused = await addPasskey(visitor, key, { deviation });
      expect([deviation, refused.status]).toEqual([deviation, 422]);
    }
    await visitor.get("/account");
    const response = "null";
    expect((await visitor.post("/account/passkeys", { name: "x", response })).status).toBe(422);
    expect((await visitor.get("/account")).text).toContain("No passkeys yet");
    const signed = await addPasskey(visitor, key, { deviation: { attestation: "self" } });
    expect(signed.location).toBe("/account?done=passkey");
  });

  test("can be set up with an invitation, and cannot be removed while it is the only way to sign in", async () => {
    const desk = await startNamedConsole();
    const { token } = await desk.members.invite("alpha", ALICE);
    const visitor = desk.visitor();
    const key = new SoftwareKey(desk.url);
    await visitor.get(`/join/${token}`);
    const options = await optionsOf<PublicKeyCredentialCreationOptionsJSON>(
      visitor,
      `/join/${token}/passkey/options`,
    );
    const response = JSON.stringify(await key.create(options));
    expect((await visitor.get(`/join/${token}`)).status, "not spent by the options").toBe(200);
    expect((await visitor.post(`/join/${token}/passkey`, { response })).location).toBe("/");
    expect(await isIn(visitor)).toBe(true);
    expect((await desk.visitor().get(`/join/${token}`)).status).toBe(410);
    expect((await signIn(desk.visitor())).status).toBe(422);

    await visitor.get("/account");
    const shown = await visitor.get(`/account/passkeys/${key.id}/remove`);
    expect([
      shown.text.includes("only way to sign in"),
      shown.text.includes("Remove passkey"),
    ]).toEqual([true, false]);
    await visitor.get("/account");
    const kept = await removePasskey(visitor, key.id, key);
    expect([kept.status, kept.text.includes("only way to sign in")]).toEqual([422, true]);
    const confirmed = await confirmation(visitor, key);
    const set = await visitor.post("/account/password", { new: PASSWORD, ...confirmed });
    expect(set.location).toBe("/account?done=password-set");
    await visitor.get("/account");
    expect((await removePasskey(visitor, key.id)).location).toBe("/account?done=removed");
    expect((await signIn(desk.visitor())).status).toBe(303);
  });
});

test("without a password, a passkey must confirm a password and another passkey", async () => {
  const { desk, visitor, key } = await startWithPasskey();
  await inDatabase(desk, (db) => db.run("UPDATE members SET password_hash = NULL"));
  const named = { name: "Phone" };
  const options = (fields: Record<string, string>) =>
    visitor.post("/account/passkeys/options", { ...named, ...fields });
  const password = (fields: Record<string, string>) =>
    visitor.post("/account/password", { new: OTHER_PASSWORD, ...fields });
  await visitor.get("/account");
  for (const send of [options, password]) {
    const alone = await send({});
    expect([alone.status, alone.text.includes("confirm with a passkey")]).toEqual([422, true]);
    const unverified = await confirmation(visitor, key, { isUserVerified: false });
    expect((await send(unverified)).status).toBe(422);
  }
  expect((await audited(desk))[0]).toContain(
    `${ALICE} member.confirmation_failed: came with a bad`,
  );
  const once = await confirmation(visitor, key);
  expect([(await options(once)).status, (await options(once)).status]).toEqual([200, 422]);
  const phone = new SoftwareKey(desk.url);
  const added = await addPasskey(visitor, phone, { name: "Phone", proof: key });
  expect(added.location).toBe("/account?done=passkey");
  const set = await password(await confirmation(visitor, phone));
  expect(set.location).toBe("/account?done=password-set");
  expect((await visitor.get("/account?done=password-set")).text).toContain("Password set");
  expect((await audited(desk))[0]).toBe(`${ALICE} member.password_set: null`);
  const old = await password(await confirmation(visitor, phone));
  expect([old.status, old.text.includes("That is your old password.")]).toEqual([422, true]);
});

test("a reset with --lock leaves neither password nor passkey, until its link is used", async () => {
  const { desk, visitor, key } = await startWithPasskey();
  const args = ["member", "reset", "alpha", ALICE, "--lock", "--data", desk.dataDir];
  const { code, stdout, stderr } = await cli(args);
  expect([code, stderr]).toEqual([0, expect.stringContaining("password and passkeys")]);
  expect(await isIn(visitor)).toBe(false);
  expect((await signIn(desk.visitor())).status).toBe(422);
  expect((await passkeySignIn(desk.visitor(), key)).status).toBe(422);
  const path = new URL(stdout.trim()).pathname;
  const again = desk.visitor();
  expect((await again.get(path)).text).toContain("Set a new password");
  const old = await again.post(path, { password: PASSWORD });
  expect([old.status, old.text.includes("That is your old password.")]).toEqual([422, true]);
  expect((await again.post(path, { password: OTHER_PASSWORD })).location).toBe("/");
  expect(await isIn(again)).toBe(true);
  expect(query(desk.dataDir, "SELECT detail FROM audit WHERE action = 'member.reset'")).toEqual([
    { detail: "the earlier password and passkeys stopped working at once" },
  ]);
});
