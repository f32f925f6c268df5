/** What requests sent that stored nothing, on the pages of their desk. */
import { expect, test } from "bun:test";
import { mintKey, signal } from "../../kit/setup.ts";
import { look, lookUntil, reasonsIn, send, totals } from "./_activity-page.ts";
import {
  auditLines,
  decoded,
  getUntil,
  rowsIn,
  seen,
  startSignedIn,
  type Visitor,
} from "../_console.ts";

const KEY = `sbk_${"0123456789abcdef".repeat(4)}`;
const HOSTILE = `"><script>document.title='taken'</script>`;

/** The page of the latest reason. */
async function openReason(visitor: Visitor, rejected: number): Promise<string> {
  const list = await lookUntil(visitor, (text) => totals(text)[2] === String(rejected));
  return look(visitor, reasonsIn(list)[0]?.path);
}

test("a rejected request shows what it sent, with each field at fault marked in words", async () => {
  const { app, visitor } = await startSignedIn();
  const sent = {
    ...signal,
    side: "up",
    symbl: 1,
    client_signal_id: "order 17",
    metadata: { side: "up", [HOSTILE]: HOSTILE, key: KEY, rtl: "\u202e" },
  };
  expect(await send(app, sent)).toBe(422);
  const text = await openReason(visitor, 1);
  const [, shown = ""] = text.split("What was sent</h2>");
  const marked = [...shown.matchAll(/<mark>(.*?)<\/mark> <strong>(.*?)<\/strong>/gs)];
  expect(marked.map(([, line, why]) => [decoded(line ?? "").trim(), why])).toEqual([
    [`"side": "up",`, "← must be one of: open, close"],
    [`"symbl": 1,`, "← is an unknown field (did you mean symbol?)"],
  ]);
  expect(seen(text)).toContain("order 17");
  // That of the metadata is not at fault.
  expect(decoded(shown)).toContain(`    "side": "up",`);
  expect(shown).not.toContain("<script>");
  expect(shown).toContain("&lt;script>");
  expect(shown).toContain("⟨U+202E⟩");
  expect(shown).not.toContain("0123456789abcdef");
});

test("a body that is no JSON is shown as it was sent, and a long one as far as it is kept", async () => {
  const { app, visitor } = await startSignedIn();
  expect(await send(app, "{side: 'up'\u0000\u001b[31m")).toBe(400);
  const text = await openReason(visitor, 1);
  expect(text).toContain("{side: 'up'");
  expect(text).toContain("⟨U+001B⟩");
  const long = { ...signal, side: "up", metadata: { text: "a ".repeat(3_000) } };
  expect(await send(app, { ...long, client_signal_id: "behind 2 KB" })).toBe(422);
  const page = seen(await openReason(visitor, 2));
  expect(page).toMatch(/The first 2,048 of 6,\d{3} bytes\./);
  expect(page).toContain("behind 2 KB");
});

test("a request whose body was not read shows none", async () => {
  const { app, visitor } = await startSignedIn();
  await app.registry.revokeKey(app.keyId);
  expect(await send(app, signal)).toBe(401);
  expect(await openReason(visitor, 1)).not.toContain("What was sent");
});

test("a member turns it off, which deletes it, and on again; the audit has both", async () => {
  const { app, visitor } = await startSignedIn();
  const named = { ...signal, client_signal_id: "order 1", price: 1 };
  const { body } = await app.post(named);
  const path = `/activity/differing/${String(body["id"])}`;
  await app.post({ ...named, price: 2 });
  await send(app, { ...signal, side: "secret plan" });
  await openReason(visitor, 1);
  await getUntil(visitor, path, (text) => rowsIn(text).length === 1);
  const kept = await visitor.get("/activity/kept");
  expect(kept.text).toContain("Stop keeping, and delete");
  expect((await visitor.post("/activity/kept/off")).location).toBe("/activity/kept");
  const off = await openReason(visitor, 1);
  expect(off).not.toContain("secret plan");
  expect(seen(off)).toContain("Your desk keeps nothing of what requests sent.");
  expect(seen((await visitor.get(path)).text)).toContain("Your desk keeps nothing");
  await send(app, { ...signal, side: "another plan" });
  expect(await openReason(visitor, 2)).not.toContain("another plan");
  expect((await visitor.get("/activity/kept")).text).toContain("Keep what requests sent");
  await visitor.post("/activity/kept/on");
  await send(app, { ...signal, side: "third plan" });
  expect(await openReason(visitor, 3)).toContain("third plan");
  const lines = (await auditLines(app)).filter((line) => line.startsWith("desk.sent"));
  expect(lines).toEqual(["desk.sent_forgotten: null", "desk.sent_kept: null"]);
  const audit = seen((await visitor.get("/audit")).text);
  expect(audit).toContain("deleted what rejected requests sent, and keeps none from now on");
});

test("duplicates that differ are shown beside their signal, newest first, to their desk alone", async () => {
  const { app, visitor } = await startSignedIn();
  const second = await mintKey(app.registry, "alpha", { label: "bot-8" });
  const named = { ...signal, client_signal_id: "order 1", price: 64_000, metadata: { a: 1 } };
  const { body } = await app.post(named);
  const id = String(body["id"]);
  const path = `/activity/differing/${id}`;
  expect(seen((await visitor.get(path)).text)).toContain("will appear here within seconds");
  await app.post({ ...named, price: 84_000, metadata: { a: HOSTILE, token: "hush" } });
  const other = { ...named, price: undefined, direction: "long" };
  await send(app, other, second.key);
  const text = await getUntil(visitor, path, (html) => rowsIn(html).length === 4);
  expect(rowsIn(text).map((row) => row.text)).toEqual([
    "direction not sent long",
    "price 64000 not sent",
    "price 64000 84000",
    `metadata {"a":1} {"a":"\\"><script>document.title='taken'</script>","token":"…"}`,
  ]);
  expect(text).not.toContain("<script>document");
  expect(text).toContain(`href="/keys/${second.keyId}"`);
  expect(text).toContain(`href="/signals/${id}"`);
  expect((await visitor.get(`/signals/${id}`)).text).toContain(`href="${path}"`);
  const stranger = (await app.signUp("beta", "bob@beta.example")).visitor;
  expect((await stranger.get(path)).status).toBe(404);
});

test("the list of signals has a filter for those with duplicates that differ, with the other filters and exports", async () => {
  const { app, visitor } = await startSignedIn();
  const post = (change: object) => app.post({ ...signal, ...change });
  await post({ client_signal_id: "order 1", symbol: "ONE", price: 1 });
  await post({ client_signal_id: "order 2", symbol: "TWO", side: "close" });
  await post({ client_signal_id: "order 3", symbol: "THREE" });
  await post({ client_signal_id: "order 4", symbol: "FOUR" });
  await post({ client_signal_id: "order 4", symbol: "FOUR" });
  const filtered = "/signals?duplicates=differing";
  expect(seen((await visitor.get(filtered)).text)).toContain("No matches yet");
  await post({ client_signal_id: "order 1", symbol: "ONE", price: 2 });
  await post({ client_signal_id: "order 2", symbol: "TWO" });
  // The newest first.
  const text = await getUntil(visitor, filtered, (html) => /<bdi>TWO.*<bdi>ONE/s.test(html));
  expect(text).not.toMatch(/<bdi>(THREE|FOUR)/);
  expect(text).toContain(`aria-label="Remove the filter Duplicates"`);
  const close = (await visitor.get(`${filtered}&side=close`)).text;
  expect(close).not.toMatch(/<bdi>ONE/);
  expect(close).toMatch(/<bdi>TWO/);
  const found = (await visitor.get(`${filtered}&symbol=on`)).text;
  expect(found).toMatch(/<bdi>ONE/);
  expect(found).not.toMatch(/<bdi>TWO/);
  const file = (await visitor.get(`/signals/export?format=ndjson&duplicates=differing`)).text;
  expect(
    file
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { symbol: string }).symbol),
  ).toEqual(["TWO", "ONE"]);
  expect((await visitor.get("/signals?duplicates=x")).status).toBe(400);
});
