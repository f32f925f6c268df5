/** What belongs to another desk does not exist: on every route, in every list, and as a parameter. */
import { expect, test } from "bun:test";
import { ulid } from "ulid";
import { allRoutes } from "../../../src/console/server/all-routes.ts";
import { mintKey, signal } from "../../kit/setup.ts";
import { lookUntil, reasonsIn, totals } from "../activity/_activity-page.ts";
import {
  concretePath,
  isIn,
  PASSWORD,
  signIn,
  startSignedIn,
  type PageAnswer,
  type TestConsole,
} from "../_console.ts";

const CAROL = "carol@theirs.example";

/** Desk `beta` with one of everything. */
async function fillBeta(app: TestConsole) {
  const { key, keyId } = await mintKey(app.registry, "beta", { label: "theirs" });
  const ended = await mintKey(app.registry, "beta", { label: "theirs" });
  const { visitor: carol } = await app.signUp("beta", CAROL);
  const { id: memberId } = (await app.members.invite("beta", "dan@theirs.example")).member;
  await signIn(app.visitor(), { email: CAROL });
  const post = (fields: object, by = key) =>
    app.post({ ...signal, symbol: "theirs", ...fields }, { Authorization: `Bearer ${by}` });
  const named = { client_signal_id: "theirs", metadata: { a: 1 } };
  const signalId = String((await post(named)).body["id"]);
  expect((await post({ ...named, price: 2 })).body["id"]).toBe(signalId);
  expect((await post({ theirs: 1 })).status).toBe(422);
  await app.registry.revokeKey(ended.keyId);
  expect((await post({}, ended.key)).status).toBe(401);
  const activity = await lookUntil(carol, (text) => totals(text).join() === "1,1,2");
  const reason = reasonsIn(activity)[0]?.id ?? "";
  const account = (await carol.get("/account")).text;
  const session = /sessions\/([^/]+)\/end/.exec(account)?.[1] ?? "";
  return { carol, keyId, endedId: ended.keyId, memberId, signalId, reason, session };
}

const routes = allRoutes.filter(({ access, path }) => access === "member" && path.includes(":"));

test("another desk's is answered like what does not exist, and is not changed", async () => {
  const { app, visitor } = await startSignedIn();
  const beta = await fillBeta(app);
  const state = async () => [await app.registry.listKeys("beta"), await app.members.list("beta")];
  const before = await state();
  const { keyId: key, signalId: signalOf, memberId: member, reason, session } = beta;
  const known = { key, signal: signalOf, member, reason, session };
  const ids = { key: ulid(), signal: ulid(), member: ulid() };
  const unknown = { ...ids, reason: "f".repeat(16), session: "f".repeat(64) };
  const ask = async (asked: typeof unknown, find: string) => {
    const concrete = {
      "/keys/:id": `/keys/${asked.key}`,
      "/signals/:id": `/signals/${asked.signal}`,
      "/activity/rejects/:reason": `/activity/rejects/${asked.reason}`,
      "/members/:id": `/members/${asked.member}`,
      "/account/sessions/:id": `/account/sessions/${asked.session}`,
    };
    const answers: unknown[] = [];
    const copy = /name="copy" value="[^"]*"/;
    const keep = (path: string, { status, location, text, headers }: PageAnswer) => {
      const forgotten = [...Object.values(asked), find].reduce(
        (all, id) => all.replaceAll(id, "_"),
        text.replace(copy, ""),
      );
      const kept = headers.toJSON();
      for (const name of ["date", "x-request-id", "content-length", "content-disposition"]) {
        delete kept[name];
      }
      answers.push({ path, status, location, text: forgotten, kept });
      return status;
    };
    const fields = { confirmation: "theirs", overlap: "1h", label: "x", current: PASSWORD };
    await visitor.get("/keys/new");
    for (const route of routes) {
      const path = concretePath(route, concrete);
      const answer = await (route.method === "GET"
        ? visitor.get(path)
        : visitor.post(path, fields));
      const expected = route.path === "/account/sessions/:id/end" ? 303 : 404;
      expect([path, keep(`${route.method} ${route.path}`, answer)]).toEqual([path, expected]);
    }
    for (const path of [
      `/activity?key=${asked.key}`,
      `/activity/rejects/${asked.reason}?key=${app.keyId}`,
      `/members/invite?member=${asked.member}`,
      `/signals?find=${asked.signal}`,
      `/signals?find=${find}`,
      `/signals?symbol=${find}`,
      `/signals/export?format=csv&symbol=${find}`,
      `/signals/export?format=ndjson&key=${asked.key}`,
    ]) {
      keep("", await visitor.get(path));
    }
    return answers;
  };
  const answers = await ask(unknown, "unknown-id");
  expect(await ask(known, "theirs")).toEqual(answers);
  const lower = { ...known, key: key.toLowerCase(), signal: signalOf.toLowerCase() };
  expect((await ask(lower, "theirs")).slice(0, routes.length)).toEqual(
    answers.slice(0, routes.length),
  );
  expect(await state()).toEqual(before);
  expect(await isIn(beta.carol)).toBe(true);
  expect((await beta.carol.get("/account")).text).toContain(session);
});

test("no page, export or answer to a script has anything of another desk's", async () => {
  const { app, visitor } = await startSignedIn();
  expect((await app.post(signal)).status).toBe(201);
  const { carol, keyId, endedId, memberId, signalId, reason } = await fillBeta(app);
  const secrets = [keyId, endedId, memberId, signalId, reason, "theirs", "Still in use"];
  const paths = allRoutes
    .filter(
      ({ method, access, path }) =>
        method === "GET" && access === "member" && !/:|export/.test(path),
    )
    .map(({ path }) => path);
  const more = [
    "/keys?ended=all",
    "/activity?per=hour",
    `/signals?before=${"7".repeat(26)}`,
    `/signals/newer?after=${"0".repeat(26)}`,
    "/signals/export?format=csv",
    "/signals/export?format=ndjson",
  ];
  const unseen = new Set(secrets);
  for (const path of [...paths, ...more]) {
    const { text } = await visitor.get(path);
    expect([path, secrets.filter((secret) => text.includes(secret))]).toEqual([path, []]);
    const theirs = (await carol.get(path)).text;
    for (const secret of secrets) if (theirs.includes(secret)) unseen.delete(secret);
  }
  expect([...unseen], "on none of their own pages either").toEqual([]);
  await lookUntil(visitor, (text) => totals(text).join() === "1,0,0");
});
