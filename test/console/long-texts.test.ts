/** Long texts in the list of signals: each has so much room and no more, and the page stays small. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { shorten } from "../../src/console/ui/words.ts";
import { signal } from "../_setup.ts";
import { startSignedIn } from "./_console.ts";

setDefaultTimeout(60_000);

const PAGE = 50;
const PAGE_BYTES_MAX = 100_000;
/** Four bytes each, and two units of UTF-16. */
const FOUR_BYTES = "𝔖";

describe("a text that is too long", () => {
  test("ends in an ellipsis after whole characters", () => {
    for (const character of ["x", "ü", "語", FOUR_BYTES]) {
      expect(shorten(character.repeat(60))).toBe(character.repeat(60));
      expect(shorten(character.repeat(61))).toBe(`${character.repeat(59)}…`);
      // Where a cut by units would go through the middle of one.
      expect(shorten(`x${character.repeat(511)}`)).toBe(`x${character.repeat(58)}…`);
    }
    expect(shorten("")).toBe("");
  });
});

describe("a page of the longest texts", () => {
  const texts = {
    "of four bytes each": FOUR_BYTES.repeat(510),
    "that pages write as six": '"'.repeat(510),
    "that fit into a title": '"'.repeat(75),
    "of four bytes each that fit into a title": FOUR_BYTES.repeat(61),
  };
  test.each(Object.entries(texts))(
    "%s stays small, and each signal's own has all",
    async (_, text) => {
      const { app, visitor } = await startSignedIn("ada@example.com");
      const label = Array.from(text).slice(0, 100).join("");
      const { key } = app.registry.mintKey({ desk: "alpha", label, expiresInMs: null });
      let id = "";
      for (let count = 0; count <= PAGE; count += 1) {
        const fields = { ...signal, symbol: text, price: -1.234_567_890_123_456e-100 };
        const answer = await app.post(fields, { Authorization: `Bearer ${key}` });
        expect(answer.status).toBe(201);
        id = String(answer.body["id"]);
      }
      for (const path of [
        "/signals",
        "/signals?side=open",
        `/signals/newer?after=${"0".repeat(26)}`,
      ]) {
        const html = (await visitor.get(path)).text;
        expect(html.match(/<tr data-id=/g)).toHaveLength(PAGE);
        expect(Buffer.byteLength(html)).toBeLessThan(PAGE_BYTES_MAX);
        expect(symbolsIn(html)).toEqual(Array.from({ length: PAGE }, () => shorten(text)));
      }
      const filtered = await visitor.get(`/signals?${new URLSearchParams({ symbol: text })}`);
      expect(filtered.text.match(/<tr data-id=/g)).toHaveLength(PAGE);
      expect(Buffer.byteLength(filtered.text)).toBeLessThan(PAGE_BYTES_MAX);
      expect(symbolsIn((await visitor.get(`/signals/${id}`)).text)).toEqual([text]);
    },
  );

  test("tells the rest of one that is a bit too long on hover", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const [long, tooLong] = ["l".repeat(75), "t".repeat(76)];
    for (const symbol of [long, tooLong, "short"]) await app.post({ ...signal, symbol });
    const { text } = await visitor.get("/signals");
    expect(text).toContain(`<bdi title="${long}">${shorten(long)}</bdi>`);
    expect(text).toContain(`<bdi>${shorten(tooLong)}</bdi>`);
    expect(text).toContain("<bdi>short</bdi>");
    // The filter suggests only symbols that are shown whole.
    const suggested = [...text.matchAll(/<option value="([^"]+)"/g)].map(([, symbol]) => symbol);
    expect(suggested).toContain("short");
    expect(suggested).not.toContain(long);
    expect(suggested).not.toContain(tooLong);
  });
});

/** The texts that stand for symbols, as a reader sees them. */
function symbolsIn(html: string): string[] {
  return [
    ...html.matchAll(/(?:<td class="main">|<dt>Symbol<\/dt><dd>)<bdi[^>]*>(.*?)<\/bdi>/g),
  ].map(([, text = ""]) => text.replaceAll("&quot;", '"'));
}

test("hundreds of keys that have ended leave the pages that offer keys small", async () => {
  const { app: desk, visitor } = await startSignedIn("ada@alpha.example");
  const ids = Array.from({ length: 400 }, (_, index) => {
    const label = `${index} ${"w".repeat(90)}`;
    const { record } = desk.registry.mintKey({ desk: "alpha", label, expiresInMs: null });
    desk.registry.revokeKey(record.id);
    return record.id;
  });
  for (const path of [`/signals?key=${ids[0]}`, "/activity", "/keys"]) {
    const { text } = await visitor.get(path);
    expect(Buffer.byteLength(text), path).toBeLessThan(PAGE_BYTES_MAX);
    if (path.startsWith("/signals")) expect(text).toContain(`value="${ids[0]}" selected`);
    if (path === "/activity") expect(text).toContain(`<option value="${ids.at(-1)}">`);
  }
});
