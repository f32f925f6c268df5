/** What a desk sees of its signals: all of its own, as they are, and nothing of another's. */
import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { prettyJson } from "../../src/domain/pretty-json.ts";
import type { StoredSignal } from "../../src/domain/stored-signal.ts";
import { ROWS_LOOKED_AT_MAX } from "../../src/store/sqlite/signals.ts";
import { mintKey, openForDamage, query, signal } from "../_setup.ts";
import {
  decoded,
  linkIn,
  startConsole,
  startSignedIn,
  type TestConsole,
  type Visitor,
} from "./_console.ts";

const PAGE = 50;

/** Sends a signal with the desk's key, or another one; its id. */
async function send(app: TestConsole, fields: object = {}, key = app.key): Promise<string> {
  const answer = await app.post({ ...signal, ...fields }, { Authorization: `Bearer ${key}` });
  expect(answer.status).toBe(201);
  return String(answer.body["id"]);
}

async function sendMany(app: TestConsole, count: number, fields: object = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) ids.push(await send(app, fields));
  return ids;
}

const idsIn = (text: string) =>
  [...text.matchAll(/<tr data-id="([^"]+)"/g)].map(([, id = ""]) => id);

const older = (text: string) => linkIn(text, "next");
const newer = (text: string) => linkIn(text, "prev");

/** The way up ends on the first page. */
async function follow(visitor: Visitor, path: string | null): Promise<string> {
  const { status, text, location } = await visitor.get(path ?? "");
  return status === 303 ? list(visitor, location ?? "") : text;
}

async function list(visitor: Visitor, path = "/signals"): Promise<string> {
  const { status, text } = await visitor.get(path);
  expect({ path, status }).toEqual({ path, status: 200 });
  return text;
}

const stored = (app: TestConsole) =>
  query<StoredSignal>(app.dataDir, "SELECT * FROM signals ORDER BY seq DESC");

describe("paging", () => {
  test("shows each once, newest first, both ways, while more arrive", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const before = await sendMany(app, 2 * PAGE + 7);
    const pages = [await list(visitor)];
    for (let next = older(pages[0] ?? ""); next !== null; next = older(pages.at(-1) ?? "")) {
      await sendMany(app, 3);
      pages.push(await list(visitor, next));
    }
    expect(pages.flatMap(idsIn)).toEqual(before.toReversed());
    expect(pages.map((text) => idsIn(text).length)).toEqual([PAGE, PAGE, 7]);

    const after = await sendMany(app, PAGE);
    const way = [pages.at(-1) ?? ""];
    for (;;) {
      const back = newer(way[0] ?? "");
      if (back === null) break;
      way.unshift(await follow(visitor, back));
    }
    // The first page overlaps with the one behind it: it is always full, and always the newest.
    const seen = [...new Set(way.flatMap(idsIn))];
    expect(seen).toEqual(stored(app).map(({ id }) => id));
    expect(idsIn(way[0] ?? "")).toEqual(after.toReversed());
  });

  test("takes no cursor that is not one", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const [id = ""] = await sendMany(app, 1);
    for (const cursor of ["", "1", "'", "%00", "x".repeat(5_000), `${id}0`]) {
      expect(idsIn(await list(visitor, `/signals?before=${cursor}`))).toEqual([id]);
    }
    expect(idsIn(await list(visitor, `/signals?before=${"0".repeat(26)}`))).toEqual([]);
    const { location } = await visitor.get(`/signals?after=7${"Z".repeat(25)}`);
    expect(location).toBe("/signals");
  });
});

describe("the filter", () => {
  test("lets through what fits, and nothing else, by each of its fields", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const second = mintKey(app.registry, "alpha");
    const plain = await send(app);
    const odd = {
      symbol: await send(app, { symbol: "ETH & <co>" }),
      source: await send(app, { source: "venue_3" }),
      type: await send(app, { type: "stock" }),
      side: await send(app, { side: "close" }),
      direction: await send(app, { direction: "sell" }),
      key: await send(app, {}, second.key),
    };
    const values = {
      symbol: "ETH & <co>",
      source: "venue_3",
      type: "stock",
      side: "close",
      direction: "sell",
      key: second.keyId,
    };
    for (const [name, id] of Object.entries(odd)) {
      const value = values[name as keyof typeof values];
      const path = `/signals?${new URLSearchParams({ [name]: value })}`;
      expect({ name, ids: idsIn(await list(visitor, path)) }).toEqual({ name, ids: [id] });
    }
    const all = Object.values(odd).toReversed();
    expect(idsIn(await list(visitor, "/signals?symbol=&source=&from="))).toEqual([...all, plain]);
    expect(idsIn(await list(visitor, "/signals?symbol=BTC%2FUSDT&side=open"))).toEqual([
      odd.key,
      odd.direction,
      odd.type,
      odd.source,
      plain,
    ]);
    expect(idsIn(await list(visitor, "/signals?side=close&type=stock"))).toEqual([]);
    expect(idsIn(await list(visitor, "/signals?symbol=th+%26+%3CCO"))).toEqual([odd.symbol]);
  });

  test("takes times to the millisecond, from and before", async () => {
    const time = { now: Date.UTC(2026, 0, 1) };
    const { app, visitor } = await startSignedIn("ada@example.com", { now: () => time.now });
    const ids: string[] = [];
    for (let second = 0; second < 4; second += 1) {
      time.now = Date.UTC(2026, 0, 1, 12, 0, second);
      ids.push(await send(app), await send(app));
    }
    const at = (from: string, to: string) =>
      list(visitor, `/signals?${new URLSearchParams({ from, to })}`).then(idsIn);
    const day = "2026-01-01T12:00";
    expect(await at(`${day}:01`, `${day}:03`)).toEqual(ids.slice(2, 6).toReversed());
    expect(await at(`${day}:01.001`, `${day}:02.001`)).toEqual(ids.slice(4, 6).toReversed());
    expect(await at(day, "")).toEqual(ids.toReversed());
    expect(await at("", day)).toEqual([]);
    expect(await at(`${day}:03`, `${day}:01`)).toEqual([]);
    expect(await at("0000-01-01T00:00", "9999-12-31T23:59")).toEqual(ids.toReversed());
  });

  test("says so where it cannot be understood, and shows nothing", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    await send(app);
    for (const wrong of [
      "side=buy",
      "source=venue_9",
      "type=TRUE",
      "direction=up",
      "key=%27",
      "from=yesterday",
      "to=2026-13-01T00:00",
      "to=2026-02-30",
    ]) {
      for (const path of ["/signals", "/signals/newer", "/signals/export"]) {
        const { status, text } = await visitor.get(`${path}?${wrong}&format=csv`);
        expect({ path, wrong, status }).toEqual({ path, wrong, status: 400 });
        expect(text).toContain(`${wrong.split("=")[0]} cannot be understood`);
        expect(idsIn(text)).toEqual([]);
      }
    }
  });
});

describe("finding one", () => {
  test("by id and by client_signal_id, exactly", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const named = await send(app, { client_signal_id: " Bot 7 / ü" });
    const plain = await send(app);
    // Somebody names a signal by the id of another.
    const twin = await send(app, { client_signal_id: plain });
    const find = (text: string) => visitor.get(`/signals?${new URLSearchParams({ find: text })}`);
    expect((await find(named)).location).toBe(`/signals/${named}`);
    expect((await find(` ${named.toLowerCase()}\n`)).location).toBe(`/signals/${named}`);
    expect((await find(" Bot 7 / ü")).location).toBe(`/signals/${named}`);
    expect(idsIn((await find(plain)).text)).toEqual([plain, twin]);
    for (const unknown of ["bot 7 / ü", "Bot 7", "%", named.slice(0, 25), "'"]) {
      const { status, text } = await find(unknown);
      expect({ unknown, status }).toEqual({ unknown, status: 404 });
      expect(text).toContain("No signal of your desk");
      expect(text).toContain(
        `href="/signals?${new URLSearchParams({ symbol: unknown })}">Signals whose symbol`,
      );
    }
  });

  test("shows all of it", async () => {
    const time = { now: 1_790_000_000_000 };
    const { app, visitor } = await startSignedIn("ada@example.com", { now: () => time.now });
    const { key } = mintKey(app.registry, "alpha", { label: "bot 7" });
    const id = await send(
      app,
      {
        direction: "short",
        price: -0.125,
        quantity: 1e21,
        signal_time: time.now - 1_500,
        client_signal_id: "order 1",
      },
      key,
    );
    const text = await list(visitor, `/signals/${id}`);
    for (const shown of [id, "order 1", "short", "-0.125", "1e+21", "bot 7", String(time.now)]) {
      expect(text).toContain(shown);
    }
    expect(text).toContain("Received 1.5 s after");
    expect((await visitor.get(`/signals/${id}/metadata`)).status).toBe(404);
  });

  test("says by how much clocks differ, whatever the bot's may be", async () => {
    const time = { now: 1_790_000_000_000 };
    const { app, visitor } = await startSignedIn("ada@example.com", { now: () => time.now });
    for (const [signal_time, words] of [
      [time.now, "in the same millisecond"],
      [time.now - 3, "3 ms after"],
      [
        time.now + 90_000,
        "1 min 30 s before the signal&#39;s own time: the bot&#39;s clock is ahead",
      ],
      [time.now - 7_200_000, "2 h after the signal&#39;s own time: sent late"],
      [0, "20,717 days after"],
      [Number.MAX_SAFE_INTEGER, "days before"],
    ] as const) {
      const text = await list(visitor, `/signals/${await send(app, { signal_time })}`);
      expect(text.replaceAll("'", "&#39;")).toContain(words);
    }
  });

  test("takes a signal_time in seconds for the mistake that it is", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const id = await send(app, { signal_time: 1_790_000_000 });
    const text = await list(visitor, `/signals/${id}`);
    expect(text).toContain("looks like seconds; send milliseconds");
    expect(text).not.toContain("days after");
  });

  test("offers it as JSON, and as a command that sends it again and has no key in it", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const metadata = `{"big":12345678901234567890,"text":"it's \u202e\u009b2J"}`;
    const sent = { ...signal, price: 1.5, client_signal_id: "order '1'" };
    const answer = await app.post(`${JSON.stringify(sent).slice(0, -1)},"metadata":${metadata}}`);
    const id = String(answer.body["id"]);
    const text = await list(visitor, `/signals/${id}`);
    const copy = (name: string) =>
      decoded(new RegExp(`<pre id="${name}"[^>]*>([^<]*)</pre>`).exec(text)?.[1] ?? "");
    expect(copy("as-json")).toContain(`"big": 12345678901234567890`);
    const command = copy("as-curl");
    expect(command).not.toMatch(/[\u007f-\u009f\u200b-\u200f\u2028-\u202e]/);
    const sender = Bun.spawn(["sh", "-c", command], {
      env: { ...process.env, SIGNALBOX_KEY: app.key },
    });
    expect(JSON.parse(await new Response(sender.stdout).text())).toMatchObject({ id });
    expect(query(app.dataDir, "SELECT 1 FROM signals")).toHaveLength(1);
    expect(text).not.toContain(app.key);
    const long = await send(app, { metadata: { text: "x".repeat(60_000) } });
    expect(Buffer.byteLength(await list(visitor, `/signals/${long}`))).toBeLessThan(100_000);
  });
});

test("hostile text stays text", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  const hostile = `"><script>alert(1)</script><img src=x onerror='alert(2)'></bdi></td></pre>&lt;`;
  const metadata = `{"a" :\r\n\t"${hostile.replaceAll('"', String.raw`\"`)}", "n": 1.000e+02, "big": 12345678901234567890}`;
  const body = JSON.stringify({ ...signal, symbol: hostile, client_signal_id: hostile });
  const answer = await app.post(`${body.slice(0, -1)},"metadata":${metadata}}`);
  expect(answer.status).toBe(201);
  const id = String(answer.body["id"]);
  const filter = new URLSearchParams({ symbol: hostile });
  for (const path of [
    "/signals",
    `/signals?${filter}`,
    `/signals?find=${encodeURIComponent(`${hostile}?`)}`,
    `/signals/newer?${filter}`,
    `/signals/${id}`,
    "/start",
  ]) {
    const { text, headers } = await visitor.get(path);
    expect({ path, has: text.includes("<script>alert") }).toEqual({ path, has: false });
    expect({ path, has: text.includes("<img src=x") }).toEqual({ path, has: false });
    expect(text).toContain("&lt;script>alert(1)");
    expect(headers.get("content-security-policy")).toContain("script-src 'self'");
  }
  const detail = await list(visitor, `/signals/${id}`);
  const shown = /<pre[^>]*>([\s\S]*?)<\/pre>/.exec(detail)?.[1] ?? "";
  expect(decoded(shown)).toBe(prettyJson(metadata));
  const file = await visitor.get(`/signals/${id}/metadata`);
  expect(file.text).toBe(metadata);
  expect(file.headers.get("content-disposition")).toStartWith("attachment;");
  expect(file.headers.get("x-content-type-options")).toBe("nosniff");
});

describe("another desk", () => {
  test("has nothing that could be seen, by whatever way", async () => {
    const app = await startConsole();
    const beta = mintKey(app.registry, "beta");
    const theirs = await send(app, { client_signal_id: "theirs", metadata: { a: 1 } }, beta.key);
    const own = await send(app);
    await send(app, { symbol: "SECRET" }, beta.key);
    const { visitor } = await app.signUp("alpha", "ada@example.com");
    for (const path of [
      `/signals/${theirs}`,
      `/signals/${theirs.toLowerCase()}`,
      `/signals/${theirs}/metadata`,
      `/signals?find=${theirs}`,
      "/signals?find=theirs",
    ]) {
      const { status, text } = await visitor.get(path);
      expect({ path, status }).toEqual({ path, status: 404 });
      expect(text).not.toContain(beta.keyId);
      const unknown = await visitor.get(path.replaceAll(/theirs|01[0-9a-z]{24}/gi, "unknown"));
      expect(forgetText(text)).toBe(forgetText(unknown.text));
    }
    for (const filter of [
      "",
      `?key=${beta.keyId}`,
      "?symbol=SECRET",
      `?before=${"7".repeat(26)}`,
    ]) {
      const ids = filter === "" || filter.startsWith("?before") ? [own] : [];
      expect({ filter, ids: idsIn(await list(visitor, `/signals${filter}`)) }).toEqual({
        filter,
        ids,
      });
      const exported = await visitor.get(
        `/signals/export${filter}${filter === "" ? "?" : "&"}format=csv`,
      );
      expect(exported.text).not.toContain("SECRET");
      expect(exported.text).not.toContain(theirs);
    }
    const rows = await list(visitor, `/signals/newer?after=${"0".repeat(26)}`);
    expect(idsIn(rows)).toEqual([own]);
    expect(rows).toContain(`data-newest="${own}"`);
  });
});

/** What was typed comes back in the field. */
function forgetText(html: string): string {
  return html.replaceAll(/(theirs|01[0-9a-z]{24}|unknown)/gi, "");
}

describe("what is asked for by the script", () => {
  test("is what arrived since, once, by the filter", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const empty = await list(visitor, "/signals?symbol=ETH");
    const path = linkOf(/data-newer="([^"]+)"/, empty);
    let newest = linkOf(/data-newest="([^"]+)"/, empty);
    const seen: string[] = [];
    const sent: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      await send(app);
      for (let index = 0; index < round; index += 1) sent.push(await send(app, { symbol: "ETH" }));
      const rows = await list(visitor, `${path}&after=${newest}`);
      newest = linkOf(/data-newest="([^"]+)"/, rows);
      seen.push(...idsIn(rows).toReversed());
    }
    expect(seen).toEqual(sent);
    expect(sent).toHaveLength(6);
    expect(idsIn(await list(visitor, `${path}&after=${newest}`))).toEqual([]);
  });

  test("is the newest where more arrived than a page shows", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const [first = "", ...rest] = await sendMany(app, PAGE + 20);
    const rows = await list(visitor, `/signals/newer?after=${first}`);
    expect(idsIn(rows)).toEqual(rest.slice(-PAGE).toReversed());
  });

  test("is on the first page alone", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    await sendMany(app, PAGE + 1);
    const first = await list(visitor);
    expect(first).toContain("data-newer=");
    expect(await list(visitor, older(first) ?? "")).not.toContain("data-newer=");
    const script = /src="(\/assets\/signals-[0-9a-f]+\.js)"/.exec(first)?.[1] ?? "";
    expect((await visitor.get(script)).headers.get("content-type")).toContain("text/javascript");
  });
});

function linkOf(pattern: RegExp, html: string): string {
  return (pattern.exec(html)?.[1] ?? "").replaceAll("&amp;", "&");
}

describe("an export", () => {
  test("is the table, in both formats", async () => {
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
      expect(column(name)).toEqual(
        cells((row) => (/^[=+\-@＝]/.test(row[name] ?? "") ? `'${row[name]}` : row[name])),
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
  async function many(): Promise<TestConsole> {
    const app = await startConsole();
    const beta = mintKey(app.registry, "beta");
    seed(openForDamage(app.dataDir), SIGNALS, [app.keyId, beta.keyId]);
    return app;
  }

  test("a filter that does not end after it begins says so at the field", async () => {
    const { visitor } = await (await startConsole()).signUp("alpha", "ada@example.com");
    for (const to of ["2026-02-01T00:00", "2026-02-02T00:00"]) {
      const { text } = await visitor.get(`/signals?from=2026-02-02T00:00&to=${to}`);
      expect(text).toMatch(/id="to"[^>]* aria-invalid="true"[^>]* aria-describedby="to-hint"/);
      expect(text).toContain("This must be later than “From”.");
    }
    const other = await visitor.get("/signals?from=2026-02-01T00:00&to=2026-02-02T00:00");
    expect(other.text).not.toContain("to-hint");
  });

  test("a search is bounded, says how far it came, and goes on to the end", async () => {
    const app = await many();
    const { visitor } = await app.signUp("alpha", "ada@example.com");
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
    // And back again.
    const above = await follow(visitor, newer(pages[1] ?? ""));
    expect(idsIn(above)).toEqual(idsIn(pages[0] ?? ""));

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

  test("an export lets everybody else's requests go first", async () => {
    const app = await many();
    const { visitor } = await app.signUp("alpha", "ada@example.com");
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
