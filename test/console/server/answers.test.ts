/** What every answer of the console has, and its log has not. */
import { expect, test } from "bun:test";
import { securityHeaders } from "../../../src/console/server/responses.ts";
import { signal } from "../../kit/setup.ts";
import {
  ALICE,
  OTHER_PASSWORD,
  type PageAnswer,
  PASSWORD,
  seen,
  signIn,
  startConsole,
  startSignedIn,
} from "../_console.ts";

const HOSTILE = `"><script>document.title='taken'</script>`;

/** As `Headers` has them. */
const security = Object.fromEntries(
  Object.entries(securityHeaders).map(([name, value]) => [name.toLowerCase(), value]),
);

test("pages load only their own files, and no page can frame them", () => {
  expect(securityHeaders["Content-Security-Policy"]).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  );
});

test("the security headers are on pages, scripts, failures and forms that are refused", async () => {
  const { app: desk, visitor } = await startSignedIn();
  const account = await visitor.get("/account");
  const script = /src="(\/assets\/[^"]+)"/.exec(account.text)?.[1] ?? "";
  const stranger = desk.visitor();
  await stranger.get("/sign-in");
  const answers: [number, PageAnswer][] = [
    [200, account],
    [422, await visitor.post("/keys", { label: "\u0001" })],
    [200, await stranger.get(script)],
    [404, await stranger.get("/nothing/here")],
    [404, await stranger.get("/assets/nothing.js")],
    [410, await stranger.get("/join/x")],
    [422, await stranger.post("/sign-in/passkey/options")],
    [413, await stranger.post("/sign-in", { email: "x".repeat(100_000) })],
    [303, await visitor.post("/sign-out")],
  ];
  for (const [status, answer] of answers) {
    expect(answer.status).toBe(status);
    expect(answer.headers.toJSON()).toMatchObject(security);
    const isAsset = answer.headers.get("content-type")?.startsWith("text/javascript") === true;
    if (!isAsset) expect(answer.headers.get("cache-control")).toBe("no-store");
  }
});

test("a query or a form with thousands of parameters is refused", async () => {
  const { visitor } = await startSignedIn();
  const many = "a&".repeat(101);
  const page = await visitor.get(`/signals?${many}`);
  expect([page.status, page.text]).toEqual([400, expect.stringContaining("Too many parameters")]);
  const form = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`f${n}`, ""]));
  expect((await visitor.post("/keys", form)).status).toBe(400);
});

test("a request over plain HTTP, and one that is no form, are refused with their reason", async () => {
  const visitor = (await startConsole({ config: { trustedProxies: ["127.0.0.1"] } })).visitor();
  for (const [answer, status, reason] of [
    [await visitor.get("/sign-in", { "X-Forwarded-Proto": "http" }), 403, "HTTPS only"],
    [await visitor.post("/sign-in", {}, { "Content-Type": "text/plain" }), 415, "Not a form"],
  ] as const) {
    expect([answer.status, seen(answer.text)]).toEqual([status, expect.stringContaining(reason)]);
  }
});

test("every list accepts any cursor and ends", async () => {
  const { app, visitor } = await startSignedIn();
  await app.post(signal);
  const rows = async (path: string) => {
    const { status, text } = await visitor.get(path);
    expect([path, status]).toEqual([path, 200]);
    return [...text.matchAll(/<tr/g)].length;
  };
  for (const [path, end] of [
    ["/signals", "0".repeat(26)],
    ["/keys", "0".repeat(26)],
    ["/audit", "1"],
  ] as const) {
    const all = await rows(path);
    for (const cursor of ["", "x", "-1", "1e9", "' OR 1", "%00", "x".repeat(5_000)]) {
      expect(await rows(`${path}?before=${cursor}`)).toBe(all);
    }
    expect(await rows(`${path}?before=${end}`)).toBeLessThan(all);
  }
  for (const cursor of ["x", "0".repeat(8), HOSTILE]) {
    const { status, text } = await visitor.get(`/activity?before=${encodeURIComponent(cursor)}`);
    expect([status, text.includes("<script>document")]).toEqual([200, false]);
  }
});

test("no password, link, cookie or token is in the log", async () => {
  const desk = await startConsole({ logLevel: "debug" });
  const { token } = await desk.members.invite("alpha", ALICE);
  const visitor = desk.visitor();
  const secrets = [token, PASSWORD, OTHER_PASSWORD];
  const keep = (): void => {
    secrets.push(visitor.csrfToken, ...visitor.cookies.values());
  };
  await visitor.get(`/join/${token}`);
  keep();
  await visitor.post(`/join/${token}`, { password: PASSWORD });
  await visitor.get("/account");
  keep();
  await visitor.post("/account/password", { current: PASSWORD, new: OTHER_PASSWORD });
  await visitor.get("/account");
  keep();
  await visitor.post("/sign-out");
  await signIn(visitor, { password: PASSWORD });
  await visitor.post("/sign-in/passkey", { response: `{"id":"${PASSWORD}"}` });
  keep();
  await signIn(visitor, { password: OTHER_PASSWORD });
  keep();
  const log = JSON.stringify(desk.log);
  expect(log).toContain("console answered");
  expect(secrets.length).toBeGreaterThan(12);
  for (const secret of secrets) expect(log).not.toContain(secret);
});
