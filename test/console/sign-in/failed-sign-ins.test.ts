/** What the log says of sign-ins that failed, and what becomes of a script that signs in all the time. */
import { expect, test } from "bun:test";
import { pino } from "pino";
import { FailedSignIns } from "../../../src/console/pages/sign-in/failed-sign-ins.ts";
import { FAILURES_MAX, SIGN_INS_MAX } from "../../../src/console/server/limits/throttle.ts";
import { logOptions } from "../../../src/lib/log.ts";
import type { LogLine } from "../../kit/setup.ts";
import { ALICE, signIn, startNamedConsole } from "../_console.ts";
import { passkeySignIn, startWithPasskey } from "./_passkeys.ts";

const MESSAGE = "failed sign-ins at the console in the last minute";

function collect(everyMs?: number) {
  const lines: LogLine[] = [];
  const log = pino(logOptions("debug"), {
    write: (line: string) => void lines.push(JSON.parse(line) as LogLine),
  });
  return { failures: new FailedSignIns(log, everyMs), lines };
}

test("unknown names, wrong passwords, wrong passkeys and throttled attempts are one line, without what was typed", async () => {
  const desk = await startNamedConsole();
  await desk.signUp("alpha", ALICE);
  const stranger = desk.visitor();
  await stranger.get("/sign-in");
  const unknown = "nobody@alpha.example";
  await Promise.all(
    Array.from({ length: FAILURES_MAX + 3 }, () =>
      stranger.post("/sign-in", { email: unknown, password: "hunter two hunter" }),
    ),
  );
  await signIn(stranger, { password: "hunter two hunter" });
  await stranger.post("/sign-in/passkey", { response: "{}" });
  await desk.stop();
  const lines = desk.log.filter(({ msg }) => msg === MESSAGE);
  expect(lines).toMatchObject([
    {
      level: "warn",
      unknown_address: FAILURES_MAX,
      throttled: 3,
      wrong_password: 1,
      refused_passkey: 1,
      clients: 1,
      // Without the member's own sign-in, which succeeded.
      most_by_client: { "127.0.0.1": FAILURES_MAX + 5 },
    },
  ]);
  expect(JSON.stringify(desk.log)).not.toMatch(/nobody@|hunter/);
});

test("each minute has its own line, and a quiet one has none", async () => {
  const { failures, lines } = collect(10);
  failures.count("throttled", "192.0.2.1");
  while (lines.length < 1) await Bun.sleep(5);
  failures.count("wrong_password", "192.0.2.2");
  while (lines.length < 2) await Bun.sleep(5);
  failures.flush();
  expect(lines).toMatchObject([{ throttled: 1 }, { wrong_password: 1 }]);
  expect(lines[1]).not.toHaveProperty("throttled");
});

test("a flood from many addresses is one line that names the worst five", () => {
  const { failures, lines } = collect();
  for (let client = 0; client < 20_000; client += 1) failures.count("throttled", `c${client}`);
  for (let time = 0; time < 9; time += 1) failures.count("throttled", "c7");
  failures.flush();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ throttled: 20_009, most_by_client: { c7: 10 } });
  expect(JSON.stringify(lines[0]).length).toBeLessThan(500);
});

test("a script that signs in all the time gets 429 with Retry-After, with a password or a passkey", async () => {
  const { desk, key } = await startWithPasskey();
  let signIns = 0;
  while ((await signIn(desk.visitor())).status === 303) signIns += 1;
  // Signing up and adding the passkey took the password, too.
  expect(signIns).toBeLessThanOrEqual(SIGN_INS_MAX);
  expect(signIns).toBeGreaterThan(SIGN_INS_MAX / 2);
  const refused = await signIn(desk.visitor());
  expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([429, true]);

  for (let time = 0; time < SIGN_INS_MAX; time += 1) {
    expect((await passkeySignIn(desk.visitor(), key)).status).toBe(303);
  }
  const last = await passkeySignIn(desk.visitor(), key);
  expect([last.status, Number(last.headers.get("retry-after")) > 0]).toEqual([429, true]);
  expect(last.text, "none of the attempts failed").toContain("Too many sign-ins.");
  await desk.registry.archiveDesk("alpha", true);
  expect((await passkeySignIn(desk.visitor(), key)).status, "at an archived desk").toBe(429);
});
