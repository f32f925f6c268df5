/** What the pages of keys and signals say of requests: how many, which were rejected, and which ended keys are still in use. */
import { describe, expect, test } from "bun:test";
import { lastDayFrom } from "../../../src/console/pages/keys/key-list.ts";
import { mintKey, signal } from "../../kit/setup.ts";
import {
  getUntil,
  rowsIn,
  seen,
  startSignedIn,
  useDesks,
  type TestConsole,
  type Visitor,
} from "../_console.ts";

const newDesk = useDesks();

async function send(app: TestConsole, key: string, fields: object = {}): Promise<number> {
  const body = { ...signal, ...fields };
  return (await app.post(body, { Authorization: `Bearer ${key}` })).status;
}

/** Asks for the page until it has the text. */
const see = (visitor: Visitor, path: string, text: string) =>
  getUntil(visitor, path, (html) => seen(html).includes(text));

/** The rows of the list: what each says, by the key's id. */
function rowsOf(html: string): Map<string, string> {
  return new Map(
    rowsIn(html).map((row) => [
      /\/keys\/([0-9A-Z]{26})/.exec(row.html)?.[1] ?? "",
      seen(`<main>${row.html}</main>`),
    ]),
  );
}

describe("a key that has ended", () => {
  test("is shown as still in use, with how often and what to do", async () => {
    const { app, visitor } = await newDesk();
    const { key, keyId } = await mintKey(app.registry, app.desk);
    expect(await send(app, key)).toBe(201);
    await app.registry.revokeKey(keyId);
    expect(seen((await visitor.get("/keys")).text)).not.toContain("Still in use");
    for (let count = 0; count < 3; count += 1) expect(await send(app, key)).toBe(401);

    const html = await see(visitor, `/keys/${keyId}`, "3 rejected");
    expect(seen(html)).toContain(
      "Something still sends with this key: 3 requests in the last 24 hours, each answered 401 and not stored, the latest ",
    );
    expect(seen(html)).toMatch(/latest \d s ago\. Give it a key that works, or stop it\./);
    expect(seen(html)).toContain("Last 24 hours4 requests, 3 rejected");
    expect(html.split(`href="/activity?key=${keyId}"`)).toHaveLength(3);
    const list = (await visitor.get("/keys")).text;
    const row = rowsOf(list).get(keyId);
    expect(row).toContain("Revoked Still in use43");
    // It expires no more.
    expect(row).toEndWith("less than a minute ago–");
    expect(list).toContain(`href="/activity?key=${keyId}"`);
    expect(rowsOf(list).get(app.keyId)).toContain("–");
  });

  test("comes first; ended keys without requests are on another page", async () => {
    const { app, visitor } = await newDesk();
    const [first, quiet] = [
      await mintKey(app.registry, app.desk),
      await mintKey(app.registry, app.desk),
    ];
    for (const { keyId } of [first, quiet]) await app.registry.revokeKey(keyId);
    expect(await send(app, first.key)).toBe(401);
    const rows = rowsOf(await see(visitor, "/keys", "Still in use"));
    // Before the one that works.
    expect([...rows.keys()]).toEqual([first.keyId, app.keyId]);
  });
});

test("a key whose requests fail for another reason is not shown as still in use, active or not", async () => {
  const { app, visitor } = await newDesk();
  const { key, keyId } = await mintKey(app.registry, app.desk);
  expect(await send(app, key, { side: "sideways" })).toBe(422);
  const alive = await see(visitor, `/keys/${keyId}`, "1 request, 1 rejected");
  expect(seen(alive)).not.toContain("still");
  await app.registry.revokeKey(keyId);
  const ended = (await visitor.get(`/keys/${keyId}`)).text;
  expect(seen(ended)).toContain("1 request, 1 rejected");
  expect(seen(ended)).not.toContain("still sends");
  expect(seen((await visitor.get("/keys")).text)).not.toContain("Still in use");
});

describe("a signal's duplicates", () => {
  const first = { client_signal_id: "order 1", price: 1, quantity: 2 };

  test("are counted, with the fields that differed", async () => {
    const { app, visitor } = await newDesk();
    const post = (fields: object) => app.post({ ...signal, ...first, ...fields });
    const { body } = await post({});
    const path = `/signals/${String(body["id"])}`;
    expect(seen((await visitor.get(path)).text)).toContain("No duplicates known");
    expect((await post({})).status).toBe(200);
    const one = seen(await see(visitor, path, "1 duplicate"));
    expect(one).toContain("With the same content.");
    expect((await post({ price: 3, quantity: 4 })).status).toBe(200);
    const text = seen(await see(visitor, path, "2 duplicatesThe latest"));
    expect(text).toContain(
      "1 of them had other content: price, quantity. The signal was stored as first sent.",
    );
    expect(text).toContain("desk's latest 10,000 signals");
  });

  test("are not shown for a signal without client_signal_id, nor for another desk's", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const theirs = await mintKey(app.registry, "beta");
    const nameless = await app.post(signal);
    const named = await app.post({ ...signal, ...first });
    for (const status of [201, 200]) expect(await send(app, theirs.key, first)).toBe(status);
    expect((await app.post({ ...signal, client_signal_id: "order 2" })).status).toBe(201);
    expect((await app.post({ ...signal, client_signal_id: "order 2" })).status).toBe(200);
    // Theirs are told of by then: what is told of comes in the order of requests.
    const { location } = await visitor.get("/signals?find=order+2");
    await see(visitor, location ?? "", "1 duplicate");
    const text = async (id: unknown) => seen((await visitor.get(`/signals/${String(id)}`)).text);
    expect(await text(named.body["id"])).toContain("No duplicates known");
    expect(await text(nameless.body["id"])).toContain("Duplicates cannot be recognized");
  });
});

test("the last 24 hours are the current hour and the 23 before it", () => {
  expect(lastDayFrom(Date.UTC(2026, 4, 1, 12, 34, 56))).toBe(Date.UTC(2026, 3, 30, 13));
  expect(lastDayFrom(Date.UTC(2026, 4, 1))).toBe(Date.UTC(2026, 3, 30, 1));
});
