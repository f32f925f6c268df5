/** One-time links: what spends them, and what they end. */
import { expect, test } from "bun:test";
import {
  ALICE,
  inDatabase,
  isIn,
  OTHER_PASSWORD,
  type PageAnswer,
  PASSWORD,
  signIn,
  startConsole,
  startSignedIn,
  isSignedIn,
  auditLines,
} from "../_console.ts";

test("only setting a password uses up the link, not opening it or a refused password", async () => {
  const desk = await startConsole();
  const { token } = await desk.members.invite("alpha", ALICE);
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
  expect((await auditLines(desk)).slice(-2)).toEqual([
    "member.joined: with a password",
    "member.signed_in: with a one-time link, in a browser not seen before",
  ]);

  const late = desk.visitor();
  expect((await late.get(`/join/${token}`)).status).toBe(410);
  await late.get("/sign-in");
  expect((await late.post(`/join/${token}`, { password: OTHER_PASSWORD })).status).toBe(410);
  expect((await signIn(late, { password: OTHER_PASSWORD })).status).toBe(422);
  expect(isSignedIn(await signIn(late))).toBe(true);
});

test("expired, unknown, used and replaced links get the same answer", async () => {
  const desk = await startConsole();
  const { token: voided } = await desk.members.invite("alpha", ALICE);
  const { token: expired } = await desk.members.invite("alpha", ALICE);
  const visitor = desk.visitor();
  expect((await visitor.get(`/join/${expired}`)).status).toBe(200);
  await inDatabase(desk, (db) =>
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
  expect((await desk.members.list("alpha"))[0]?.joined_at).toBe(null);
});

test("a reset ends the sessions at once; the old password works until the link is used", async () => {
  const { app: desk, visitor } = await startSignedIn();
  expect(await isIn(visitor)).toBe(true);
  const { token } = await desk.members.reset("alpha", ALICE);
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
