/** Keys with limits in the console: the form, the key's page, and requests from other networks. */
import { expect, test } from "bun:test";
import { mintKey, signal } from "../../kit/setup.ts";
import { lookUntil, reasonsIn } from "../activity/_activity-page.ts";
import { getUntil, type PageAnswer, seen, useDesks, type Visitor } from "../_console.ts";
import { readFeed } from "../../feed/_feed.ts";

const newDesk = useDesks({ config: { readListen: { host: "127.0.0.1", port: 0 } } });

async function submit(visitor: Visitor, fields: Record<string, string>): Promise<PageAnswer> {
  const { text } = await visitor.get("/keys/new");
  const copy = /name="copy" value="([^"]+)"/.exec(text)?.[1] ?? "";
  return visitor.post("/keys", { copy, ...fields });
}

const idIn = ({ location }: PageAnswer) => /\/keys\/(\w{26})\/key/.exec(location ?? "")?.[1] ?? "";

test("the form creates a limited key; its page says so, and so does that of its successor", async () => {
  const { app, visitor } = await newDesk();
  const form = (await visitor.get("/keys/new")).text;
  expect(form).toContain("<details><summary>Limits</summary>");
  const answer = await submit(visitor, {
    label: "bot-7",
    networks: " 203.0.113.0/24,2001:db8::/32\n203.0.113.0/24 ",
    venue_1: "on",
    venue_3: "on",
    stock: "on",
    rate: " 5 ",
  });
  const id = idIn(answer);
  const limits = {
    networks: ["203.0.113.0/24", "2001:db8::/32"],
    sources: ["venue_1", "venue_3"],
    types: ["stock"],
    rate: 5,
  };
  expect((await app.registry.findKey(id))?.limits).toEqual(limits);
  // A command that the key may send.
  const shown = seen((await visitor.get(answer.location ?? "")).text);
  expect(shown).toContain(`"source":"venue_1","type":"stock"`);
  const page = (await visitor.get(`/keys/${id}`)).text;
  const words =
    "LimitsWorks from 203.0.113.0/24, 2001:db8::/32Sends only venue_1, venue_3Sends only stock5 requests per second";
  expect(seen(page)).toContain(words);
  expect(seen(page)).toContain(
    "created the key bot-7 (…" +
      (await app.registry.findKey(id))?.last4 +
      "): limited to networks ",
  );
  expect(seen((await visitor.get(`/keys/${id}/rotate`)).text)).toContain("same label and limits");
  const { minted } = await app.registry.rotateKey(id, { overlapMs: 1_000 });
  expect(seen((await visitor.get(`/keys/${minted.record.id}`)).text)).toContain(words);
});

test("a form without limits creates a key without them", async () => {
  const { app, visitor } = await newDesk();
  const id = idIn(await submit(visitor, { networks: " , ", rate: "" }));
  expect((await app.registry.findKey(id))?.limits).toBeNull();
  const page = seen((await visitor.get(`/keys/${id}`)).text);
  expect(page).not.toContain("Limits");
  expect(seen((await visitor.get(`/keys/${id}/rotate`)).text)).toContain("the same label.");
});

test.each<[Record<string, string>, string]>([
  [{ networks: "10.0.0.0/33" }, `"10.0.0.0/33" is not an address range`],
  [{ networks: `"><script>x</script>` }, `is not an address range`],
  [
    {
      networks: Array(21)
        .fill("10.0.0.")
        .map((one, n) => one + n)
        .join(" "),
    },
    "these are 21",
  ],
  [{ rate: "0" }, "from 1 to 100000"],
  [{ rate: "1e3" }, "from 1 to 100000"],
  [{ rate: "٥" }, "from 1 to 100000"],
  [{ rate: "99999999999999999999" }, "from 1 to 100000"],
])("the form says what is wrong with %j, and keeps it, open", async (fields, problem) => {
  const { app, visitor } = await newDesk();
  const { status, text } = await submit(visitor, { ...fields, crypto: "on", unknown: "on" });
  expect(status).toBe(422);
  expect(seen(text)).toContain(problem);
  expect(text).toContain("<details open><summary>Limits</summary>");
  expect(text).toContain(`name="crypto" checked`);
  expect(text).not.toContain(`name="stock" checked`);
  expect(text).not.toContain("<script>x");
  expect(await app.registry.listKeys(app.desk)).toHaveLength(1);
});

test("requests from outside its networks are in Activity and on the key's page, with the addresses", async () => {
  const { app, visitor } = await newDesk();
  const limits = { networks: ["203.0.113.0/24"] };
  const { key, keyId } = await mintKey(app.registry, app.desk, { label: "bot-7", limits });
  const send = async () => (await app.post(signal, { Authorization: `Bearer ${key}` })).status;
  for (let count = 0; count < 3; count += 1) expect(await send()).toBe(401);
  const list = await lookUntil(
    visitor,
    (text) => reasonsIn(text)[0]?.text.includes(" 3 ") === true,
  );
  const [reason, ...others] = reasonsIn(list);
  expect(others).toEqual([]);
  expect(reason?.text).toMatch(
    /^401 The key was used from outside its networks 3 \d s ago bot-7 …/,
  );
  const page = (await visitor.get(reason?.path ?? "")).text;
  expect(seen(page)).toContain("Answer401 unauthorized");
  expect(seen(page).split("It came from 127.0.0.1.")).toHaveLength(4);
  expect(seen(page)).toContain("If this was your bot, create a key with its network.");

  const ofKey = (await visitor.get(`/keys/${keyId}`)).text;
  expect(seen(ofKey)).toContain(
    "Something uses this key from outside its networks: 3 requests in the last 24 hours, each answered 401, the latest ",
  );
  expect(ofKey).toContain(`href="/activity/rejects/${reason?.id}?key=${keyId}"`);
  // Ended keys that are still in use are another matter.
  await app.registry.revokeKey(keyId);
  expect(seen((await visitor.get("/keys")).text)).not.toContain("Still in use");
  expect(seen((await visitor.get(`/keys/${keyId}`)).text)).not.toContain("still sends");
});

test("so are those with a read key, though its other requests are not", async () => {
  const { app, visitor } = await newDesk();
  const url = app.app.feedUrl ?? "";
  const read = { scope: "read", label: null, expiresInMs: null } as const;
  const limits = { networks: ["203.0.113.0/24"] };
  const own = (await app.registry.mintKey({ ...read, desk: app.desk, limits })).key;
  const all = (await app.registry.mintKey({ ...read, desk: null, limits })).key;
  const open = (await app.registry.mintKey({ ...read, desk: app.desk })).key;
  for (const key of [own, all]) expect((await readFeed(url, key)).status).toBe(401);
  expect((await readFeed(url, open, { limit: 0 })).status).toBe(422);
  const list = await getUntil(visitor, "/activity", (text) => reasonsIn(text).length > 0);
  expect(reasonsIn(list).map(({ text }) => text)).toEqual([
    expect.stringMatching(/^401 The key was used from outside its networks 1 /),
  ]);
});
