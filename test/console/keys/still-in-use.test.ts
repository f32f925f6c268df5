/** What the pages of keys say of requests: how many, which were rejected, and which ended keys are still in use. */
import { describe, expect, test } from "bun:test";
import { lastDayFrom } from "../../../src/console/pages/keys/key-list.ts";
import { mintKey, signal } from "../../kit/setup.ts";
import { getUntil, rowsIn, seen, useDesks, type TestConsole, type Visitor } from "../_console.ts";

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

test("the last 24 hours are the current hour and the 23 before it", () => {
  expect(lastDayFrom(Date.UTC(2026, 4, 1, 12, 34, 56))).toBe(Date.UTC(2026, 3, 30, 13));
  expect(lastDayFrom(Date.UTC(2026, 4, 1))).toBe(Date.UTC(2026, 3, 30, 1));
});
