/** Hidden characters that bots send are shown as what they are on every page. */
import { expect, test } from "bun:test";
import { HIDDEN_CHARACTER } from "../../../src/lib/text/hidden.ts";
import { signal } from "../../kit/setup.ts";
import { getUntil, inDatabase, seen, startSignedIn } from "../_console.ts";

const TEXT = "B\u202eTC\u200b\ufeff/x";
const MARKED = "B⟨U+202E⟩TC⟨U+200B⟩⟨U+FEFF⟩/x";

/** Without attributes, which are never shown as text, and line breaks. */
const textOf = (html: string) => html.replaceAll(/="[^"]*"/g, "").replaceAll("\n", "");

test("texts of bots, in lists, details, titles and exports", async () => {
  const { app, visitor } = await startSignedIn();
  const metadata = { note: "x\u202ey" };
  const sent = { ...signal, symbol: TEXT, client_signal_id: TEXT, metadata };
  const id = String((await app.post(sent)).body["id"]);
  await app.post({ ...signal, [`extra${TEXT}`]: 1 });
  // As a restored database may have it.
  await inDatabase(app, (db) => db.run("UPDATE api_keys SET label = ?", [TEXT]));
  const reject = await getUntil(visitor, "/activity", (html) => html.includes("extra"));
  const reason = /\/activity\/rejects\/\w+/.exec(reject)?.[0] ?? "";
  for (const [path, shown] of [
    ["/", MARKED],
    ["/start", MARKED],
    ["/signals", MARKED],
    [`/signals?${new URLSearchParams({ symbol: TEXT })}`, MARKED],
    [`/signals?${new URLSearchParams({ find: `${TEXT}?` })}`, MARKED],
    [`/signals/${id}`, MARKED],
    [`/keys/${app.keyId}`, MARKED],
    ["/keys", MARKED],
    ["/audit", MARKED],
    ["/activity", `extra${MARKED}`],
    [reason, `extra${MARKED}`],
  ] as const) {
    const html = (await visitor.get(path)).text;
    expect(seen(html), path).toContain(shown);
    const title = /<title>(.*)<\/title>/.exec(html)?.[1] ?? "";
    const left = textOf(html.replace(title, ""));
    expect(HIDDEN_CHARACTER.exec(left), path).toBeNull();
  }
  const page = (await visitor.get(`/signals/${id}`)).text;
  expect(page).toContain(`<title>\u2068${MARKED}\u2069 open · Signalbox</title>`);
  expect(page).toContain(String.raw`&quot;note&quot;: &quot;x\u202ey&quot;`);
  expect(page, "what the button copies").toContain(`data-copied="${TEXT}"`);
  expect(page).toContain('<span class="mark">⟨U+202E⟩</span>');

  expect((await visitor.get("/signals/export?format=csv")).text).toContain(`,${MARKED},`);
  const [line = ""] = (await visitor.get("/signals/export?format=ndjson")).text.split("\n");
  expect(JSON.parse(line)).toMatchObject({ symbol: TEXT, client_signal_id: TEXT, metadata });
  expect((await visitor.get(`/signals/${id}/metadata`)).text).toBe(JSON.stringify(metadata));
});
