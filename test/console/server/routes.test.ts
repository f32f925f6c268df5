/** Every route, asked by everybody who may not: strangers, other sites, other desks, other hosts. */
import { beforeAll, expect, test } from "bun:test";
import { ulid } from "ulid";
import { allRoutes } from "../../../src/console/server/all-routes.ts";
import { securityHeaders } from "../../../src/console/server/responses.ts";
import type { Route } from "../../../src/console/server/routes.ts";
import { parseAllowed } from "../../../src/notices/allow.ts";
import { mintKey, sharedByFile, signal } from "../../kit/setup.ts";
import { lookUntil, reasonsIn, totals } from "../activity/_activity-page.ts";
import {
  ALICE,
  auditLines,
  concretePath,
  isIn,
  OTHER_PASSWORD,
  type PageAnswer,
  PASSWORD,
  seen,
  signIn,
  startConsole,
  type TestConsole,
  type Visitor,
} from "../_console.ts";

/** In every text of a desk. */
const MARK = "theirs";
/** Where members may send notices. */
const NOTICES = "notices.example";

/** A desk with one of everything, and a member of it. */
async function fillDesk(app: TestConsole, desk: string, email: string) {
  const { visitor } = await app.signUp(desk, email);
  const { key, keyId } = await mintKey(app.registry, desk, { label: MARK });
  const ended = await mintKey(app.registry, desk, { label: MARK });
  const { token, member } = await app.members.invite(desk, `dan@${MARK}.${desk}.example`);
  await signIn(app.visitor(), { email });
  const post = (fields: object, by = key) =>
    app.post({ ...signal, symbol: MARK, ...fields }, { Authorization: `Bearer ${by}` });
  const named = { client_signal_id: MARK, metadata: { a: 1 } };
  const signalId = String((await post(named)).body["id"]);
  expect((await post({ ...named, price: 2 })).body["id"]).toBe(signalId);
  expect((await post({ [MARK]: 1 })).status).toBe(422);
  await app.registry.revokeKey(ended.keyId);
  expect((await post({}, ended.key)).status).toBe(401);
  const activity = await lookUntil(visitor, (text) => totals(text).join() === "1,1,2");
  await visitor.get("/notices/new");
  const place = { destination: "webhook", address: `https://${NOTICES}/${MARK}`, kind: "rejects" };
  await visitor.post("/notices/new", place);
  const notices = (await visitor.get("/notices")).text;
  const session = /sessions\/([^/]+)\/end/.exec((await visitor.get("/account")).text)?.[1];
  const ids = {
    key: keyId,
    signal: signalId,
    member: member.id,
    place: /href="\/notices\/([0-9A-Z]{26})"/.exec(notices)?.[1] ?? "",
    reason: reasonsIn(activity)[0]?.id ?? "",
    session: session ?? "",
    token,
  };
  return { visitor, ids, endedId: ended.keyId };
}

type Ids = Awaited<ReturnType<typeof fillDesk>>["ids"];

const shared = sharedByFile(async () => {
  const notices = { allow: [parseAllowed(NOTICES)], mail: null };
  const app = await startConsole({ config: { notices } });
  const [alpha, beta] = await Promise.all([
    fillDesk(app, "alpha", ALICE),
    fillDesk(app, "beta", `carol@${MARK}.example`),
  ]);
  const { visitor: viewer } = await app.signUp("alpha", "vera@alpha.example", "viewer");
  return { app, alpha, beta, viewer };
});

/** What nobody here may change. */
const stateOf = async (app: TestConsole) => [
  await auditLines(app),
  ...(await Promise.all(["alpha", "beta"].map((desk) => app.registry.listKeys(desk)))),
  ...(await Promise.all(["alpha", "beta"].map((desk) => app.members.list(desk)))),
];

/** What a form needs to do something; the others need nothing. */
const filled: Record<string, Record<string, string>> = {
  "/account/password": { current: PASSWORD, new: OTHER_PASSWORD },
  "/account/passkeys/options": { current: PASSWORD, name: "x" },
  "/account/passkeys": { name: "x", response: "{}" },
  "/account/passkeys/:id/remove": { current: PASSWORD },
  "/members/invite": { email: "eve@alpha.example", role: "manager", current: PASSWORD },
  "/members/:id/role": { role: "viewer", current: PASSWORD },
  "/members/:id/remove": { current: PASSWORD },
  "/keys": { label: "bot", expires: "never" },
  "/keys/:id": { label: "renamed" },
  "/keys/:id/rotate": { overlap: "1h" },
  "/keys/:id/revoke": { confirmation: MARK },
  "/sign-in": { email: ALICE, password: PASSWORD },
  "/sign-in/passkey": { response: "{}" },
  "/join/:token": { password: PASSWORD },
  "/join/:token/passkey": { response: "{}" },
};

function pathOf(route: Route, ids: Ids): string {
  return concretePath(route, {
    "/keys/:id": `/keys/${ids.key}`,
    "/signals/:id": `/signals/${ids.signal}`,
    "/activity/differing/:id": `/activity/differing/${ids.signal}`,
    "/members/:id": `/members/${ids.member}`,
    "/notices/:id": `/notices/${ids.place}`,
    "/activity/rejects/:reason": `/activity/rejects/${ids.reason}`,
    "/account/sessions/:id": `/account/sessions/${ids.session}`,
    "/join/:token": `/join/${ids.token}`,
  });
}

type Fields = Record<string, string | null>;

/** Asks for a page, or sends a form with what it needs. */
async function ask(
  visitor: Visitor,
  route: Route,
  ids: Ids,
  { fields = {}, headers = {} }: { fields?: Fields; headers?: Fields } = {},
): Promise<PageAnswer & { name: string }> {
  const path = pathOf(route, ids);
  const answer = await (route.method === "GET"
    ? visitor.get(path, headers as Record<string, string>)
    : visitor.post(path, { ...filled[route.path], ...fields }, headers));
  return { ...answer, name: `${route.method} ${route.path}` };
}

/** What is on every answer. */
function expectSafe({ name, headers }: PageAnswer & { name: string }): void {
  const expected = Object.entries({ ...securityHeaders, "Cache-Control": "no-store" });
  const actual = expected.map(([header]) => [header, headers.get(header)]);
  expect([name, actual]).toEqual([name, expected]);
}

const forms = allRoutes.filter(({ method }) => method === "POST");
const ofMembers = allRoutes.filter(({ access }) => access === "member" || access === "manager");
const changing = ofMembers.filter(({ access }) => access === "manager");
const ofOne = ofMembers.filter(({ path }) => path.includes(":"));

let before: Awaited<ReturnType<typeof stateOf>>;
beforeAll(async () => {
  before = await stateOf(shared().app);
});

test("a visitor who is not signed in can open no member page and send no member form", async () => {
  const { app, alpha } = shared();
  const stranger = app.visitor();
  await stranger.get("/sign-in");
  for (const route of allRoutes.filter(({ access }) => access !== "public")) {
    const answer = await ask(stranger, route, alpha.ids);
    const path = pathOf(route, alpha.ids);
    const next = path === "/" ? "" : `?next=${encodeURIComponent(path)}`;
    const expected = route.method === "GET" ? [303, `/sign-in${next}`] : [403, null];
    expect([answer.name, answer.status, answer.location]).toEqual([answer.name, ...expected]);
    expectSafe(answer);
  }
  // A page that everybody may see is a decision: this list is where it is made.
  const open = allRoutes.filter(({ access }) => access === "public").map(({ path }) => path);
  expect([...new Set(open)].toSorted()).toEqual([
    "/join/:token",
    "/join/:token/passkey",
    "/join/:token/passkey/options",
    "/sign-in",
    "/sign-in/passkey",
    "/sign-in/passkey/options",
  ]);
  expect(await stateOf(app)).toEqual(before);
});

test("a member who must add a passkey gets to the page for it, whatever they ask for", async () => {
  const { app, alpha } = shared();
  const { visitor } = await app.signUp("gamma", "gus@gamma.example");
  await app.registry.requirePasskeys("gamma", true);
  await visitor.get("/passkey");
  for (const route of ofMembers) {
    const { name, status, location } = await ask(visitor, route, alpha.ids);
    expect([name, status, location]).toEqual([name, 303, "/passkey"]);
  }
});

test("a viewer gets 403 with a sentence from each route that changes the desk, and changes nothing", async () => {
  const { app, alpha, viewer } = shared();
  await viewer.get("/account");
  // More often than a member may change something in a minute.
  for (let round = 0; round < 5; round += 1) {
    for (const route of changing) {
      const answer = await ask(viewer, route, alpha.ids);
      expect([answer.name, answer.status]).toEqual([answer.name, 403]);
      expect(seen(answer.text)).toContain(
        "you are a viewer of this desk, and only its managers and administrators can change it",
      );
      expectSafe(answer);
    }
  }
  expect(await stateOf(app)).toEqual(before);
});

const formsOf = (routes: readonly Route[]) =>
  routes
    .filter(({ method }) => method === "POST")
    .map(({ path }) => path)
    .toSorted();

test("each form is listed: as one that changes the desk, or the member's own account alone", () => {
  expect(formsOf(changing)).toEqual([
    "/activity/kept/off",
    "/activity/kept/on",
    "/keys",
    "/keys/:id",
    "/keys/:id/revoke",
    "/keys/:id/rotate",
    "/members/:id/remove",
    "/members/:id/role",
    "/members/invite",
    "/notices/:id/remove",
    "/notices/:id/test",
    "/notices/new",
    "/notices/silence",
  ]);
  const own = allRoutes.filter(({ access }) => access === "member" || access === "signed-in");
  expect(formsOf(own)).toEqual([
    "/account/confirm/options",
    "/account/passkeys",
    "/account/passkeys/:id/remove",
    "/account/passkeys/options",
    "/account/password",
    "/account/sessions/:id/end",
    "/account/sign-out-everywhere",
    "/passkey",
    "/passkey/options",
    "/sign-out",
  ]);
});

/** The pages of members, with links and forms that change the desk. */
async function offered(visitor: Visitor, ids: Ids): Promise<string[]> {
  const found = new Set<string>();
  const pages = ofMembers.filter(
    ({ method, path }) => method === "GET" && !/export|passkeys/.test(path),
  );
  for (const route of pages.filter(({ access }) => access === "member")) {
    const { name, status, text } = await ask(visitor, route, ids);
    expect([name, status]).toEqual([name, 200]);
    for (const [method, pattern] of [
      ["GET", / href="([^"?#]+)/g],
      ["POST", /<form method="post"[^>]* action="([^"]+)"/g],
    ] as const) {
      const targets = [...text.matchAll(pattern)].map(([, path = ""]) => path);
      for (const to of changing.filter((one) => one.method === method)) {
        const path = new RegExp(`^${to.path.replaceAll(/:\w+/g, "[^/]+")}$`);
        if (targets.some((target) => path.test(target))) found.add(`${name}: ${to.path}`);
      }
    }
  }
  return [...found].toSorted();
}

test("a viewer sees every page of the desk, without what changes it, and is told who can", async () => {
  const { alpha, viewer } = shared();
  expect(await offered(viewer, alpha.ids)).toEqual([]);
  expect(await offered(alpha.visitor, alpha.ids)).toEqual([
    "GET /activity/differing/:id: /activity/kept",
    "GET /keys/:id: /keys/:id",
    "GET /keys/:id: /keys/:id/revoke",
    "GET /keys/:id: /keys/:id/rotate",
    "GET /keys: /keys/new",
    "GET /members: /members/:id/remove",
    "GET /members: /members/:id/role",
    "GET /members: /members/invite",
    "GET /notices/:id: /notices/:id/remove",
    "GET /notices/:id: /notices/:id/test",
    "GET /notices: /notices/new",
    "GET /notices: /notices/silence",
  ]);
  const sentence = "You are a viewer of this desk: only its managers and administrators can";
  for (const path of ["/keys", `/keys/${alpha.ids.key}`, "/members", "/notices"]) {
    expect(seen((await viewer.get(path)).text)).toContain(sentence);
    expect(seen((await alpha.visitor.get(path)).text)).not.toContain("You are a viewer");
  }
});

/** How a request differs from one of our own page. */
const forged: [string, Fields, Fields][] = [
  ["without the token", { csrf: null }, {}],
  ["with a made-up token", { csrf: "A".repeat(43) }, {}],
  ["from another site", {}, { "Sec-Fetch-Site": "cross-site" }],
  ["by an old browser, from nowhere", {}, { "Sec-Fetch-Site": null, Origin: "null" }],
  ["by no browser", {}, { "Sec-Fetch-Site": null }],
];

test.each(forged)("a form %s is refused, and changes nothing", async (_, fields, headers) => {
  const { app, alpha } = shared();
  const unknown = Object.keys(filled).filter((path) => !forms.some((form) => form.path === path));
  expect(unknown).toEqual([]);
  await alpha.visitor.get("/account");
  for (const form of forms) {
    const answer = await ask(alpha.visitor, form, alpha.ids, { fields, headers });
    expect([answer.name, answer.status]).toEqual([answer.name, 403]);
    expectSafe(answer);
  }
  expect(await isIn(alpha.visitor)).toBe(true);
  expect(await stateOf(app)).toEqual(before);
});

test("HEAD is refused on every page and changes nothing", async () => {
  const { app, alpha } = shared();
  const cookies = new Map(alpha.visitor.cookies);
  for (const route of allRoutes.filter(({ method }) => method === "GET")) {
    const answer = await alpha.visitor.head(pathOf(route, alpha.ids));
    const methods = allRoutes.filter(({ path }) => path === route.path);
    const allow = methods.map(({ method }) => method).join(", ");
    const { status, headers, text } = answer;
    expect([route.path, status, headers.get("allow"), text]).toEqual([route.path, 405, allow, ""]);
    expectSafe({ ...answer, name: route.path });
  }
  expect(alpha.visitor.cookies).toEqual(cookies);
  expect((await alpha.visitor.head("/nothing/here")).status).toBe(404);
  expect(await stateOf(app)).toEqual(before);
});

test("no route answers under another host's name", async () => {
  const { alpha } = shared();
  for (const route of allRoutes) {
    const headers = { Host: "evil.example" };
    const answer = await ask(alpha.visitor, route, alpha.ids, { headers });
    expect([answer.name, answer.status]).toEqual([answer.name, 421]);
    expectSafe(answer);
  }
});

/** The answers to a member of another desk, without the ids that they asked with. */
async function answersTo(visitor: Visitor, ids: Ids, find: string, ownKey: string) {
  const answers: unknown[] = [];
  const keep = (name: string, { status, location, text, headers }: PageAnswer) => {
    const forgotten = [...Object.values(ids), find].reduce(
      (all, id) => all.replaceAll(id, "_"),
      text.replace(/name="copy" value="[^"]*"/, ""),
    );
    const kept = headers.toJSON();
    for (const header of ["date", "x-request-id", "content-length", "content-disposition"]) {
      delete kept[header];
    }
    answers.push({ name, status, location, text: forgotten, kept });
  };
  await visitor.get("/keys/new");
  for (const route of ofOne) {
    const answer = await ask(visitor, route, ids);
    const expected = route.path === "/account/sessions/:id/end" ? 303 : 404;
    expect([answer.name, answer.status]).toEqual([answer.name, expected]);
    keep(answer.name, answer);
  }
  for (const path of [
    `/activity?key=${ids.key}`,
    `/activity/rejects/${ids.reason}?key=${ownKey}`,
    `/members/invite?member=${ids.member}`,
    `/signals?find=${ids.signal}`,
    `/signals?find=${find}`,
    `/signals?symbol=${find}`,
    `/signals/export?format=csv&symbol=${find}`,
    `/signals/export?format=ndjson&key=${ids.key}`,
  ]) {
    keep("", await visitor.get(path));
  }
  return answers;
}

test("another desk's is answered like what does not exist, and is not changed", async () => {
  const { app, beta } = shared();
  const { visitor } = await app.signUp("delta", "dora@delta.example");
  const { keyId } = await mintKey(app.registry, "delta");
  const { key, signal: signalId, session } = beta.ids;
  const unknown = { key: ulid(), signal: ulid(), member: ulid(), place: ulid() };
  const hashes = { token: "x".repeat(43), reason: "f".repeat(16), session: "f".repeat(64) };
  const answers = await answersTo(visitor, { ...unknown, ...hashes }, "unknown-id", keyId);
  expect(await answersTo(visitor, beta.ids, MARK, keyId)).toEqual(answers);
  const lower = { ...beta.ids, key: key.toLowerCase(), signal: signalId.toLowerCase() };
  const ofLower = await answersTo(visitor, lower, MARK, keyId);
  expect(ofLower.slice(0, ofOne.length)).toEqual(answers.slice(0, ofOne.length));
  expect(await stateOf(app)).toEqual(before);
  expect((await beta.visitor.get("/account")).text).toContain(session);
});

test("no page, export or answer to a script has anything of another desk's", async () => {
  const { app, beta } = shared();
  const { visitor } = await app.signUp("epsilon", "emil@epsilon.example");
  const { key } = await mintKey(app.registry, "epsilon");
  expect((await app.post(signal, { Authorization: `Bearer ${key}` })).status).toBe(201);
  const { key: keyId, signal: signalId, member, reason } = beta.ids;
  const secrets = [keyId, beta.endedId, member, signalId, reason, MARK, "Still in use"];
  const lists = ofMembers
    .filter(({ method, path }) => method === "GET" && !/:|export/.test(path))
    .map(({ path }) => path);
  const unseen = new Set(secrets);
  for (const path of [
    ...lists,
    "/keys?ended=all",
    "/activity?per=hour",
    `/signals?before=${"7".repeat(26)}`,
    `/signals/newer?after=${"0".repeat(26)}`,
    "/signals/export?format=csv",
    "/signals/export?format=ndjson",
  ]) {
    const { text } = await visitor.get(path);
    expect([path, secrets.filter((secret) => text.includes(secret))]).toEqual([path, []]);
    const theirs = (await beta.visitor.get(path)).text;
    for (const secret of secrets) if (theirs.includes(secret)) unseen.delete(secret);
  }
  expect([...unseen], "on none of their own pages either").toEqual([]);
  await lookUntil(visitor, (text) => totals(text).join() === "1,0,0");
});
