/** How often members may change something. */
import { describe, expect, test } from "bun:test";
import {
  DESK_WRITES_PER_MINUTE,
  MEMBER_WRITES_PER_MINUTE,
  SIGN_OUTS_PER_MINUTE,
  WriteLimit,
} from "../../../src/console/server/limits/write-limit.ts";
import { mintKey, query, signal } from "../../kit/setup.ts";
import { startSignedIn, type TestConsole } from "../_console.ts";

const keysOf = ({ dataDir }: TestConsole) =>
  query<{ count: number }>(dataDir, "SELECT count(*) AS count FROM api_keys")[0]?.count ?? 0;

describe("in the console", () => {
  test("a member who floods POST /keys creates a few keys and gets 429 for the rest", async () => {
    const { app, visitor } = await startSignedIn("ada@alpha.example");
    const { visitor: other } = await app.signUp("alpha", "ben@alpha.example");
    await visitor.get("/keys/new");
    await other.get("/keys/new");
    const before = keysOf(app);
    const startedAt = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 3 * MEMBER_WRITES_PER_MINUTE }, () =>
        visitor.post("/keys", { label: "flood", expires: "never" }),
      ),
    );
    const made = answers.filter(({ status }) => status === 303).length;
    const refused = answers.filter(({ status }) => status === 429);
    const minutes = (performance.now() - startedAt) / 60_000;
    expect(made).toBeGreaterThanOrEqual(MEMBER_WRITES_PER_MINUTE);
    expect(made).toBeLessThanOrEqual(Math.ceil(MEMBER_WRITES_PER_MINUTE * (1 + minutes)));
    expect(made + refused.length).toBe(answers.length);
    expect(keysOf(app) - before).toBe(made);
    expect(Number(refused[0]?.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(refused[0]?.headers.get("content-type")).toStartWith("text/html");
    expect(refused[0]?.text).toContain("Nothing was changed: you or your desk sent too many");
    expect(refused[0]?.text).toMatch(/Try again in \d+ seconds?\./);
    expect(refused[0]?.text, "the navigation").toContain('href="/audit"');
    expect((await visitor.get("/keys")).status, "a page of the same member").toBe(200);
    expect((await other.post("/keys", { expires: "never" })).status, "a colleague").toBe(303);
    expect((await app.post(signal)).status).toBe(201);
  });

  test("a member over the limit can still revoke keys, end sessions and sign out, here and everywhere", async () => {
    const { app, visitor } = await startSignedIn("ada@alpha.example");
    const { visitor: other } = await app.signUp("alpha", "ben@alpha.example");
    const { keyId } = await mintKey(app.registry, "alpha", { label: "bot" });
    await visitor.get("/keys/new");
    const flood = Array.from({ length: 2 * MEMBER_WRITES_PER_MINUTE }, () =>
      visitor.post("/keys", { expires: "never" }),
    );
    expect((await Promise.all(flood)).map(({ status }) => status)).toContain(429);
    const statuses: number[] = [];
    for (let count = 0; count < 3; count += 1) {
      const { status } = await visitor.post(`/keys/${keyId}/revoke`, { confirmation: "bot" });
      statuses.push(status);
    }
    statuses.push((await visitor.post("/account/sessions/unknown/end")).status);
    const everywhere = await visitor.post("/account/sign-out-everywhere");
    expect(everywhere.location).toBe("/account?done=elsewhere");
    await visitor.get("/account");
    statuses.push((await visitor.post("/sign-out")).status);
    expect(statuses).toEqual([303, 303, 303, 303, 303]);
    expect(
      (await app.registry.listKeys("alpha")).find(({ id }) => id === keyId)?.revoked_at,
    ).not.toBeNull();
    const revocations = "SELECT count(*) AS count FROM audit WHERE action = 'key.revoked'";
    expect(query<{ count: number }>(app.dataDir, revocations)).toEqual([{ count: 1 }]);
    expect((await visitor.get("/keys")).location).toStartWith("/sign-in");
    expect((await other.get("/keys")).status).toBe(200);
  });

  test("a form from another site does not count", async () => {
    const { visitor } = await startSignedIn("ada@alpha.example");
    await visitor.get("/keys/new");
    for (let count = 0; count <= MEMBER_WRITES_PER_MINUTE; count += 1) {
      const forged = await visitor.post("/keys", {}, { "Sec-Fetch-Site": "cross-site" });
      expect(forged.status).toBe(403);
    }
    expect((await visitor.post("/keys", { expires: "never" })).status).toBe(303);
  });
});

test("a desk's members share a limit, and other desks have theirs", () => {
  const limit = new WriteLimit();
  const members = DESK_WRITES_PER_MINUTE / MEMBER_WRITES_PER_MINUTE;
  const send = (member: number, deskId: number, now = 0): boolean => {
    try {
      limit.take({ memberId: `${deskId}-${member}`, deskId }, "/keys", now);
      return true;
    } catch (error) {
      expect(error).toMatchObject({ code: "rate_limited" });
      return false;
    }
  };
  for (let member = 0; member < members; member += 1) {
    for (let count = 0; count < MEMBER_WRITES_PER_MINUTE; count += 1) {
      expect(send(member, 1)).toBe(true);
    }
    expect(send(member, 1)).toBe(false);
  }
  expect(send(members, 1), "one who has sent nothing yet").toBe(false);
  expect(send(0, 2), "of another desk").toBe(true);
  expect(send(members, 1, 1_000), "a second later").toBe(true);
});

test("signing out everywhere has a limit of its own, so that it cannot hold up signals", () => {
  const limit = new WriteLimit();
  const send = () => limit.take({ memberId: "a", deskId: 1 }, "/account/sign-out-everywhere", 0);
  for (let count = 0; count < SIGN_OUTS_PER_MINUTE; count += 1) send();
  expect(send).toThrow(expect.objectContaining({ code: "rate_limited" }));
  limit.take({ memberId: "a", deskId: 1 }, "/keys", 0);
});
