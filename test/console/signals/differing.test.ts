/** What pages say of duplicates: the one of their signal, and that of those which differ. */
import { expect, test } from "bun:test";
import { ulid } from "ulid";
import { DAY_MS } from "../../../src/lib/text/time.ts";
import { mintKey, signal } from "../../kit/setup.ts";
import { repeatsOf } from "../../domain/_activity.ts";
import { deskIdOf, recordOf } from "../activity/_activity-page.ts";
import { getUntil, nextIn, rowsIn, seen, startSignedIn } from "../_console.ts";

const PATH = "/activity/differing";

test("a desk sees which signal, when, with which key, and in which fields", async () => {
  const { app, visitor } = await startSignedIn();
  expect(seen((await visitor.get(PATH)).text)).toContain("No duplicate differs");
  const { key } = await mintKey(app.registry, "alpha", { label: "bot 7" });
  const sent = { ...signal, client_signal_id: "order 1", price: 1 };
  const { body } = await app.post(sent);
  const path = `/signals/${String(body["id"])}`;
  const history = async (says: string) =>
    seen(await getUntil(visitor, path, (text) => seen(text).includes(says)));
  await history("No duplicates known");
  await app.post(sent);
  expect(await history("1 duplicate")).toContain("With the same content.");
  for (const price of [2, 3]) {
    const again = { ...sent, price, quantity: 5 };
    expect((await app.post(again, { Authorization: `Bearer ${key}` })).status).toBe(200);
  }
  const html = await getUntil(visitor, PATH, (text) => text.includes("2 duplicates"));
  const [row, ...others] = rowsIn(html);
  expect(others).toEqual([]);
  expect(row?.text).toMatch(
    /^BTC\/USDT order 1 price, quantity 2 duplicates \d s ago bot 7 …[0-9a-f]{4}$/,
  );
  expect(row?.html).toContain(`href="${PATH}/${String(body["id"])}"`);
  expect((await visitor.get("/activity")).text).toContain(
    `href="${PATH}">2 duplicates with other content than the stored signal</a>`,
  );
  const home = (await visitor.get("/")).text;
  expect(seen(home)).toMatch(
    /2 duplicates had other content than the stored signal and were not stored, the latest \d s ago\. See which/,
  );
  expect(home).toContain(`href="${PATH}"`);
  expect((await visitor.get(path)).text).toContain(`href="${PATH}/${String(body["id"])}"`);
  const counted = await history("3 duplicatesThe latest");
  expect(counted).toContain(
    "2 of them had other content: price, quantity. The signal was stored as first sent.",
  );
  expect(counted).toContain("desk's latest 10,000 signals");
  const nameless = (await app.post(signal)).body["id"];
  expect(seen((await visitor.get(`/signals/${String(nameless)}`)).text)).toContain(
    "Duplicates cannot be recognized",
  );

  const stranger = (await app.signUp("beta", "bob@beta.example")).visitor;
  expect(seen((await stranger.get(PATH)).text)).toContain("No duplicate differs");
  const activity = (await stranger.get("/activity")).text;
  expect(seen(activity)).toContain("No duplicate differs from the stored signal.");
  expect(activity).not.toContain(PATH);
});

test("Home names only those whose latest one came in the last 24 hours, and Activity all", async () => {
  const { app, visitor } = await startSignedIn();
  const { body } = await app.post(signal);
  const sent = { deskId: deskIdOf(app), keyId: app.keyId, lastAt: Date.now() - 2 * DAY_MS };
  await recordOf(app)({ repeats: [repeatsOf(String(body["id"]), ["price"], sent)] });
  expect((await visitor.get("/")).text).not.toContain(PATH);
  expect((await visitor.get("/activity")).text).toContain(">1 duplicate with other content");
});

test("there are pages of them, and what a restore removed is left out", async () => {
  const { app, visitor } = await startSignedIn();
  const deskId = deskIdOf(app);
  const now = Date.now();
  const ids: string[] = [];
  for (let count = 0; count < 30; count += 1) {
    ids.push(String((await app.post({ ...signal, client_signal_id: `o${count}` })).body["id"]));
  }
  const sent = { deskId, keyId: app.keyId };
  await recordOf(app)({
    repeats: [ulid(), ...ids].map((id, index) =>
      repeatsOf(id, ["price"], { ...sent, lastAt: now - index }),
    ),
  });
  const first = (await visitor.get(PATH)).text;
  const second = (await visitor.get(nextIn(first) ?? "")).text;
  const shown = [...rowsIn(first), ...rowsIn(second)].map(
    ({ html }) => /\/differing\/(\w+)/.exec(html)?.[1],
  );
  expect(shown).toEqual(ids);
  expect(nextIn(second)).toBeNull();
  expect((await visitor.get(`${PATH}?before=nonsense`)).status).toBe(200);
});
