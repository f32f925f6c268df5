/** Exports, and what is looked at among many signals. */
import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { ROWS_LOOKED_AT_MAX } from "../../../src/store/records/signals/rows.ts";
import { hashSignals, NO_HASH } from "../../kit/records.ts";
import { mintKey, openForDamage, query, sharedByFile } from "../../kit/setup.ts";
import { startSignedIn } from "../_console.ts";
import { idsIn, list, older, send, sendMany } from "./_signals-page.ts";

test("an export is a file of the desk's signals, newest first, in both formats", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  const theirs = await mintKey(app.registry, "beta");
  await send(app, {}, theirs.key);
  // More than a chunk has.
  const ids = (await sendMany(app, 600)).toReversed();
  const csv = await visitor.get("/signals/export?format=csv");
  expect(csv.headers.get("content-disposition")).toMatch(
    /^attachment; filename="signals-alpha-[^"]+\.csv"$/,
  );
  const [head = "", ...lines] = csv.text.trimEnd().split("\r\n");
  expect(head).toStartWith("id,desk,received_at,");
  expect(lines.map((line) => line.split(",")[0])).toEqual(ids);
  const { text } = await visitor.get("/signals/export?format=ndjson");
  expect(idsOfLines(text)).toEqual(ids);
  expect((await visitor.get("/signals/export?format=xls")).status).toBe(404);
});

const idsOfLines = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { id: string }).id);

describe("with many signals", () => {
  const SIGNALS = 3 * ROWS_LOOKED_AT_MAX + 500;

  /** Every second one of another desk; one of each ten thousand has the symbol `RARE`. */
  const many = sharedByFile(async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const beta = await mintKey(app.registry, "beta");
    seed(openForDamage(app.dataDir), SIGNALS, [app.keyId, beta.keyId]);
    return { app, visitor };
  });

  test("a search is bounded, says how far it got, and continues to the end", async () => {
    const { app, visitor } = many();
    const rare = query<{ id: string }>(
      app.dataDir,
      "SELECT id FROM signals WHERE symbol = 'RARE' AND desk_id = 1 ORDER BY seq DESC",
    ).map(({ id }) => id);
    const pages = [await list(visitor, "/signals?symbol=RARE")];
    for (let next = older(pages[0] ?? ""); next !== null; next = older(pages.at(-1) ?? "")) {
      pages.push(await list(visitor, next));
    }
    expect(pages.flatMap(idsIn)).toEqual(rare);
    // Half of the rows are of this desk.
    expect(pages).toHaveLength(Math.ceil(SIGNALS / 2 / ROWS_LOOKED_AT_MAX));
    expect(pages.map((text) => text.includes("Searched as far as"))).toEqual([true, false]);

    const nothing = await list(visitor, "/signals?symbol=NONE");
    expect(nothing).toContain("No matches so far");
    const end = await list(visitor, older(nothing) ?? "");
    expect(end).toContain("No older matches");
    expect(older(end)).toBeNull();
    expect(await list(visitor, `/signals/newer?symbol=NONE&after=${"0".repeat(26)}`)).toContain(
      "data-cut",
    );

    const { text } = await visitor.get("/signals/export?format=ndjson&symbol=RARE");
    expect(idsOfLines(text)).toEqual(rare);
  });

  test("an export yields to other requests", async () => {
    const { app, visitor } = many();
    const cookie = [...visitor.cookies].map((pair) => pair.join("=")).join("; ");
    const answer = await fetch(`${app.url}/signals/export?format=csv`, {
      headers: { Cookie: cookie },
    });
    const order: string[] = [];
    const file = answer.text().then((text) => (order.push("file"), text));
    await list(visitor).then(() => order.push("page"));
    expect((await file).split("\r\n")).toHaveLength(2 + SIGNALS / 2);
    expect(order).toEqual(["page", "file"]);

    // One that finds nothing has no reader to wait for.
    const nothing = visitor.get("/signals/export?format=csv&symbol=NONE").then(({ text }) => text);
    expect(await list(visitor)).toContain("BTC/USDT");
    expect((await nothing).split("\r\n")).toHaveLength(2);
  });
});

const SEEDED_AT = 1_790_000_000_000;

/** In the order of time, one a millisecond, of the desks 1 and 2 by turns. */
function seed(db: Database, count: number, keyIds: readonly string[]): void {
  db.query(
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
     INSERT INTO signals (seq, id, desk_id, key_id, received_at, client_signal_id, source, type, symbol, side, hash)
     SELECT n, printf('01M%023d', n), 1 + n % 2, CASE n % 2 WHEN 0 THEN ?2 ELSE ?3 END, ?4 + n,
       'id-' || n, 'venue_2', 'crypto', CASE (n / 2) % 5000 WHEN 0 THEN 'RARE' ELSE 'BTC/USDT' END, 'open', ${NO_HASH}
     FROM numbers`,
  ).run(count, keyIds[0] ?? "", keyIds[1] ?? "", SEEDED_AT);
  hashSignals(db);
}
