/** Exports, and what is looked at among many signals. */
import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { showHidden } from "../../../src/lib/text/hidden.ts";
import type { StoredSignal } from "../../../src/domain/signal/stored-signal.ts";
import { ROWS_LOOKED_AT_MAX } from "../../../src/store/records/signals/rows.ts";
import { mintKey, openForDamage, query, sharedByFile, signal } from "../../kit/setup.ts";
import { startSignedIn } from "../_console.ts";
import { idsIn, list, older, send, sendMany, stored } from "./_signals-page.ts";

describe("an export", () => {
  test("has the rows of the table, in both formats", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const texts = ['a "quoted", one', "=1+1", "-2+3", "@SUM(A1)", "+x", "'", "ü\u2028", "＝1"];
    for (const text of texts) {
      await send(app, { symbol: text, price: -1.5, client_signal_id: text });
    }
    await app.post(
      `${JSON.stringify({ ...signal, signal_time: Number.MAX_SAFE_INTEGER }).slice(0, -1)},"metadata":{"n":\r\n12345678901234567890,"s":"a\\nb"}}`,
    );
    await sendMany(app, 600);
    const rows = stored(app);

    const csv = await visitor.get("/signals/export?format=csv");
    expect(csv.headers.get("content-disposition")).toMatch(
      /^attachment; filename="signals-alpha-[^"]+\.csv"$/,
    );
    const [header = [], ...lines] = parseCsv(csv.text);
    expect(lines).toHaveLength(rows.length);
    const column = (name: string) => lines.map((line) => line[header.indexOf(name)] ?? "");
    const cells = (read: (row: StoredSignal) => string | number | null) =>
      rows.map((row) => String(read(row) ?? ""));
    for (const name of [
      "id",
      "received_at",
      "source",
      "type",
      "side",
      "price",
      "signal_time",
      "key_id",
    ] as const) {
      expect({ name, cells: column(name) }).toEqual({ name, cells: cells((row) => row[name]) });
    }
    expect(column("metadata")).toEqual(
      cells(({ metadata }) => metadata?.replaceAll(/[\r\n]/g, " ") ?? null),
    );
    for (const name of ["symbol", "client_signal_id"] as const) {
      const shown = (row: StoredSignal) => (row[name] === null ? null : showHidden(row[name]));
      expect(column(name)).toEqual(
        cells((row) => (/^[=+\-@＝]/.test(row[name] ?? "") ? `'${shown(row)}` : shown(row))),
      );
    }
    expect(column("price")[rows.length - 1]).toBe("-1.5");

    const ndjson = await visitor.get("/signals/export?format=ndjson");
    const objects = ndjson.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(
      objects.map(({ id, symbol, client_signal_id, price }) => ({
        id,
        symbol,
        client_signal_id,
        price,
      })),
    ).toEqual(
      rows.map(({ id, symbol, client_signal_id, price }) => ({
        id,
        symbol,
        client_signal_id,
        price,
      })),
    );
    expect(ndjson.text).toContain('"metadata":{"n":  12345678901234567890,"s":"a\\nb"}}\n');
    expect(ndjson.text).toContain('"metadata":null}\n');
    expect((await visitor.get("/signals/export?format=xls")).status).toBe(404);
  });
});

/** RFC 4180, strictly. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y;
  while (cell.lastIndex < text.length) {
    const at = cell.lastIndex;
    const found = cell.exec(text);
    if (found === null) throw new Error(`not CSV at ${at}: ${text.slice(at, at + 40)}`);
    row.push(found[1]?.replaceAll('""', '"') ?? found[2] ?? "");
    if (found[3] === "\r\n") {
      rows.push(row);
      row = [];
    }
  }
  return rows;
}

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
    expect(
      text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).id),
    ).toEqual(rare);
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
    expect(parseCsv(await file)).toHaveLength(1 + SIGNALS / 2);
    expect(order).toEqual(["page", "file"]);

    // One that finds nothing has no reader to wait for.
    const nothing = visitor.get("/signals/export?format=csv&symbol=NONE").then(({ text }) => text);
    expect(await list(visitor)).toContain("BTC/USDT");
    expect(parseCsv(await nothing)).toHaveLength(1);
  });
});

const SEEDED_AT = 1_790_000_000_000;

/** In the order of time, one a millisecond, of the desks 1 and 2 by turns. */
function seed(db: Database, count: number, keyIds: readonly string[]): void {
  db.query(
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
     INSERT INTO signals (seq, id, desk_id, key_id, received_at, client_signal_id, source, type, symbol, side)
     SELECT n, printf('01M%023d', n), 1 + n % 2, CASE n % 2 WHEN 0 THEN ?2 ELSE ?3 END, ?4 + n,
       'id-' || n, 'venue_2', 'crypto', CASE (n / 2) % 5000 WHEN 0 THEN 'RARE' ELSE 'BTC/USDT' END, 'open'
     FROM numbers`,
  ).run(count, keyIds[0] ?? "", keyIds[1] ?? "", SEEDED_AT);
}
