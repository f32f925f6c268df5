/** A member's own browser is known again after a restart, so that no stranger keeps its member out. */
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { SESSIONS_NAME } from "../../../src/store/sqlite/side/sessions.ts";
import { FAILURES_MAX } from "../../../src/console/server/limits/throttle.ts";
import { cookieNames } from "../../../src/console/server/visit.ts";
import {
  ALICE,
  auditOf,
  carry,
  signIn,
  startConsole,
  type TestConsole,
  type Visitor,
} from "../_console.ts";

/** The same browser after the restart and the end of its session. */
function signedOut(from: Visitor, to: TestConsole): Visitor {
  const visitor = carry(from, to);
  visitor.cookies.delete(cookieNames.session);
  return visitor;
}

async function failTenTimes(desk: TestConsole): Promise<void> {
  const stranger = desk.visitor();
  await stranger.get("/sign-in");
  await Promise.all(
    Array.from({ length: FAILURES_MAX }, (_, index) =>
      stranger.post("/sign-in", { email: ALICE, password: `guess number ${index}` }),
    ),
  );
  expect((await signIn(stranger)).status).toBe(429);
}

test("the member's browser can sign in after a restart and ten wrong passwords from a stranger", async () => {
  const before = await startConsole();
  const { visitor } = await before.signUp("alpha", ALICE);
  await before.stop();
  const after = await startConsole({ dataDir: before.dataDir });
  await failTenTimes(after);
  expect((await signIn(signedOut(visitor, after))).location).toBe("/");
});

test("the audit says of a sign-in whether the member signed in with that browser before", async () => {
  const desk = await startConsole();
  const { visitor } = await desk.signUp("alpha", ALICE);
  const last = async () => (await auditOf(desk))[0]?.detail;
  expect(await last()).toBe("with a password, in a browser not seen before");
  await signIn(signedOut(visitor, desk));
  expect(await last()).toBe("with a password");
  await desk.signUp("alpha", "ben@example.com");
  await signIn(signedOut(visitor, desk), { email: "ben@example.com" });
  expect(await last()).toBe("with a password, in a browser not seen before");
});

test("without the file of the sessions, the secret is another one, and no browser is known", async () => {
  const before = await startConsole();
  const { visitor } = await before.signUp("alpha", ALICE);
  await before.stop();
  rmSync(join(before.dataDir, SESSIONS_NAME));
  const after = await startConsole({ dataDir: before.dataDir });
  await failTenTimes(after);
  expect((await signIn(signedOut(visitor, after))).status).toBe(429);
});

test("the console starts with a warning if the secret cannot be saved", async () => {
  const before = await startConsole();
  await before.stop();
  const file = join(before.dataDir, SESSIONS_NAME);
  await Bun.$`rm ${file} && mkdir ${file}`.quiet();
  const after = await startConsole({ dataDir: before.dataDir });
  expect((await after.visitor().get("/sign-in")).status).toBe(200);
  expect(after.log).toContainEqual(
    expect.objectContaining({ level: "warn", msg: expect.stringContaining(file) }),
  );
});

test("an untrusted local proxy is logged once as a warning; a trusted one is not", async () => {
  const desk = await startConsole();
  const warnings = () => desk.log.filter(({ msg }) => msg.includes("--trust-proxy 127.0.0.1"));
  await desk.visitor().get("/sign-in");
  expect(warnings()).toHaveLength(0);
  for (let time = 0; time < 3; time += 1) {
    await desk.visitor().get("/sign-in", { "X-Forwarded-For": "203.0.113.9" });
  }
  expect(warnings()).toMatchObject([{ level: "warn" }]);
  expect(JSON.stringify(desk.log)).not.toContain("203.0.113.9");
  const trusting = await startConsole({ config: { trustedProxies: ["127.0.0.1"] } });
  const headers = { "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https" };
  expect((await trusting.visitor().get("/sign-in", headers)).status).toBe(200);
  expect(trusting.log.filter(({ msg }) => msg.includes("--trust-proxy"))).toEqual([]);
});
