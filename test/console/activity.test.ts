/** What a desk sees of its requests: what became of its own, why some were rejected, and nothing of another's. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  activityWidths,
  type ActivityBatch,
  type RejectReason,
} from "../../src/domain/activity.ts";
import { type ErrorCode, errorCatalogue } from "../../src/domain/errors.ts";
import { remedies } from "../../src/console/activity/labels.ts";
import { SqliteActivity } from "../../src/store/sqlite/activity.ts";
import { rateLimited, rejectsOf, requestIdOf, sideIsRequired } from "../_activity.ts";
import { mintKey, onCleanup, openForDamage, query, signal } from "../_setup.ts";
import {
  decoded,
  getUntil,
  linkIn,
  seen,
  startSignedIn,
  type TestConsole,
  type Visitor,
} from "./_console.ts";

setDefaultTimeout(60_000);

const PAGE = 25;
const PAGE_BYTES_MAX = 100 * 1024;
const HOSTILE = `"><script>document.title='taken'</script>`;

/** A bot's request; its status. */
async function send(app: TestConsole, body: unknown, key = app.key): Promise<number> {
  return (await app.post(body, { Authorization: `Bearer ${key}` })).status;
}

async function look(visitor: Visitor, path = "/activity"): Promise<string> {
  const { status, text } = await visitor.get(path);
  expect({ path, status }).toEqual({ path, status: 200 });
  return text;
}

const lookUntil = (visitor: Visitor, isSo: (text: string) => boolean, path = "/activity") =>
  getUntil(visitor, path, isSo);

/** Stored, duplicate and rejected in the shown span. */
function totals(text: string): string[] {
  const [figures = ""] = /<dl class="figures".*?<\/dl>/s.exec(text) ?? [];
  return [...figures.matchAll(/<dd>([\d,]+)<\/dd>/g)].map(([, total = ""]) => total);
}

/** Of the table: when, stored, duplicate, rejected. */
function rows(text: string): string[][] {
  const [body = ""] = /<tbody.*?<\/tbody>/s.exec(text) ?? [];
  return [...body.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = ""]) =>
    [...row.matchAll(/<td>(?:<time datetime="([^"]*)">)?(.*?)(?:<\/time>)?<\/td>/g)].map(
      ([, time, cell = ""]) => time ?? cell,
    ),
  );
}

const isoMinute = (at: number) => `${new Date(at).toISOString().slice(0, 16)}Z`;

const requestIds = (text: string) =>
  [...text.matchAll(/<code id="r-([^"]*)"/g)].map(([, id = ""]) => id);

const older = (text: string) => linkIn(text, "next") ?? "";

const rejected = (text: string) => [...text.matchAll(/tag bad">(4\d\d)</g)].map(([, code]) => code);

/** Writes as the server does, but what and when is the test's choice. */
function recordOf(app: TestConsole): (batch: Partial<ActivityBatch>) => void {
  const activity = new SqliteActivity(app.dataDir, () => {});
  onCleanup(() => activity.close());
  return (batch) => activity.write({ minutes: [], rejects: [], repeats: [], ...batch });
}

function deskIdOf(app: TestConsole, name: string): number {
  const [row] = query<{ id: number }>(app.dataDir, "SELECT id FROM desks WHERE name = ?", name);
  if (row === undefined) throw new Error(`no desk ${name}`);
  return row.id;
}

/** A request for a reason of its own per number. */
function rejectsIn(
  app: TestConsole,
  number: number,
  reason: Partial<RejectReason> = { moreFields: number },
): ActivityBatch["rejects"][number] {
  return rejectsOf([number], Date.now() - 60_000, {
    deskId: deskIdOf(app, "alpha"),
    keyId: app.keyId,
    reason: { ...sideIsRequired, ...reason },
  });
}

describe("the numbers", () => {
  test("count what was stored, known already and rejected, by minute, hour and day", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const once = { ...signal, client_signal_id: "once" };
    const sent = [signal, once, once, { ...signal, side: "up" }, "{", once];
    const statuses: number[] = [];
    for (const body of sent) statuses.push(await send(app, body));
    expect(statuses).toEqual([201, 201, 200, 422, 400, 200]);
    for (const per of ["minute", "hour", "day"]) {
      const path = `/activity?per=${per}`;
      const text = await lookUntil(visitor, (now) => totals(now).join() === "2,2,2", path);
      const sums = [1, 2, 3].map((column) =>
        rows(text).reduce((sum, row) => sum + Number(row[column]), 0),
      );
      expect({ per, sums }).toEqual({ per, sums: [2, 2, 2] });
    }
  });

  test("leave out rows with nothing in them, and say how to fill the gaps", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const now = Date.now();
    const deskId = deskIdOf(app, "alpha");
    const write = recordOf(app);
    const minute = now - (now % 60_000);
    const ages = [5 * 60_000, 179 * 60_000 - 60_000, 20 * 3_600_000, 30 * 86_400_000];
    for (const age of ages.toReversed()) {
      const count = { stored: 1, duplicate: 0, rejected: 0, unauthorized: 0, lastAt: now };
      write({ minutes: [{ deskId, keyId: app.keyId, start: minute - age, ...count }] });
    }
    const expected = { minute: 2, day: ages.length };
    for (const [per, total] of Object.entries(expected)) {
      const text = await look(visitor, `/activity?per=${per}`);
      expect({ per, totals: totals(text) }).toEqual({ per, totals: [String(total), "0", "0"] });
    }
    const text = await look(visitor);
    expect(rows(text)).toEqual(
      ages.slice(0, 2).map((age) => [isoMinute(minute - age), "1", "0", "0"]),
    );
    const data = /data-start="(\d+)" data-width="(\d+)" data-count="(\d+)"/.exec(text);
    const [start, width, count] = (data ?? []).slice(1).map(Number);
    const { ms, kept } = activityWidths.minute;
    expect({ width, count }).toEqual({ width: ms, count: kept });
    // The last one is the minute in which the page was made.
    const last = (start ?? 0) + (kept - 1) * ms;
    expect(last).toBeGreaterThanOrEqual(minute);
    expect(last).toBeLessThanOrEqual(Date.now());
    const day = rows(await look(visitor, "/activity?per=day")).map(([name]) => name);
    expect(day.at(-1)).toBe(new Date(minute - (ages[3] ?? 0)).toISOString().slice(0, 10));
  });

  test("are those of one key where that is chosen, as are the rejected requests", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const second = mintKey(app.registry, "alpha");
    await send(app, signal);
    await send(app, { ...signal, side: "left" });
    await send(app, { ...signal, symbol: "" }, second.key);
    await lookUntil(visitor, (text) => totals(text).join() === "1,0,2");
    const text = await look(visitor, `/activity?per=hour&key=${second.keyId}`);
    expect(totals(text)).toEqual(["0", "0", "1"]);
    expect(requestIds(text)).toHaveLength(1);
    expect(seen(text)).toContain("symbol must have");
    expect(seen(text)).not.toContain("side must be");
    // The choice stays with the other spans, and the other way round.
    expect(text).toContain(`href="/activity?per=day&amp;key=${second.keyId}"`);
    expect(text).toContain(`name="per" value="hour"`);
    expect(text).toContain(`<option value="${second.keyId}" selected`);
    expect(totals(await look(visitor, "/activity?key="))).toEqual(["1", "0", "2"]);
  });

  test("come with the rejected requests and without the rest of the page for the script", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const path = "/activity/live?per=minute";
    expect(totals(await look(visitor, path))).toEqual(["0", "0", "0"]);
    await send(app, "{");
    const text = await lookUntil(visitor, (now) => totals(now)[2] === "1", path);
    expect(text).not.toContain("<html");
    expect(requestIds(text)).toHaveLength(1);
    expect(requestIds(await look(visitor, `${path}&status=422`))).toEqual([]);
  });
});

describe("a rejected request", () => {
  test("says when, with which key, what was answered, why, and what to do", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const answer = await app.post({ ...signal, side: "up", sied: "open" });
    const text = await lookUntil(visitor, (now) => requestIds(now).length === 1);
    expect(requestIds(text)).toEqual([answer.headers.get("x-request-id") ?? ""]);
    for (const part of [
      `href="/keys/${app.keyId}"`,
      "422",
      "validation_failed",
      "<code>side</code> must be one of: open, close",
      "<code>sied</code> is an unknown field",
      remedies.validation_failed,
      `data-copy="#r-${requestIds(text)[0]}"`,
    ]) {
      expect(text).toContain(part);
    }
  });

  test("has as many reasons as are kept, and says that there are more", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    await send(app, { ...signal, ...Object.fromEntries(numbered(11)) });
    await send(app, { ...signal, ...Object.fromEntries(numbered(12)) });
    const text = await lookUntil(visitor, (now) => requestIds(now).length === 2);
    expect([...text.matchAll(/<code>field/g)]).toHaveLength(2 * 10);
    expect(text).toContain("and 1 more field<");
    expect(text).toContain("and 2 more fields<");
  });

  test("has the message where there are no fields, and keeps what clients named as text", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    await send(app, "{");
    await send(app, { ...signal, [HOSTILE]: 1, ["w".repeat(400)]: 2 });
    await send(app, `{"__proto__":1,"constructor":2}`);
    const text = await lookUntil(visitor, (now) => requestIds(now).length === 3);
    expect(text).toContain("The body is not valid JSON");
    expect(text).toContain(remedies.bad_request);
    expect(text).not.toContain("<script>document");
    expect(text).toContain("<code>&quot;>&lt;script>document.title='taken'&lt;/script></code>");
    expect(text).toContain("<code>__proto__</code> is an unknown field");
    expect(text).toContain("<code>constructor</code>");
  });

  test("says in words that its key was revoked, or had expired", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const short = app.registry.mintKey({ desk: "alpha", label: "short", expiresInMs: 60_000 });
    expect(await send(app, "{", short.key)).toBe(400);
    app.registry.revokeKey(app.keyId);
    openForDamage(app.dataDir).run("UPDATE api_keys SET expires_at = ? WHERE id = ?", [
      Date.now() - 1,
      short.record.id,
    ]);
    expect([await send(app, signal), await send(app, signal, short.key)]).toEqual([401, 401]);
    const text = await lookUntil(visitor, (now) => requestIds(now).length === 3);
    expect(rejected(text)).toEqual(["401", "400"]);
    expect(text).toContain("The key was revoked on <time");
    expect(text).toContain("The key expired on <time");
    expect(text).toContain(`<span class="tag bad">revoked</span>`);
    // Of the one that was sent while the key still worked, too.
    expect([...text.matchAll(/tag calm">expired</g)]).toHaveLength(2);
    // What it was refused for stays what it was.
    app.registry.revokeKey(short.record.id);
    expect(await look(visitor)).toContain("The key expired on <time");
  });

  test("has words for what the bot should do, whatever the code", () => {
    const codes = Object.keys(errorCatalogue) as ErrorCode[];
    expect(Object.keys(remedies).toSorted()).toEqual(codes.toSorted());
    for (const code of codes) expect(remedies[code]).toMatch(/^[A-Z].{10,80}\.$/);
  });
});

function numbered(count: number, name = "field"): [string, number][] {
  return Array.from({ length: count }, (_, index) => [`${name}${index}`, index]);
}

describe("paging", () => {
  test("shows each reason once, the latest first", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const write = recordOf(app);
    const count = 2 * PAGE + 7;
    write({ rejects: Array.from({ length: count }, (_, index) => rejectsIn(app, index)) });
    const pages = [await look(visitor, `/activity?per=hour&key=${app.keyId}&status=422`)];
    for (let next = older(pages[0] ?? ""); next !== ""; next = older(pages.at(-1) ?? "")) {
      // What arrives meanwhile moves nothing.
      write({ rejects: [rejectsIn(app, count + pages.length)] });
      expect(next).toStartWith(`/activity?per=hour&key=${app.keyId}&status=422&before=`);
      pages.push(await look(visitor, next));
    }
    const all = Array.from({ length: count }, (_, index) => requestIdOf(index)).toReversed();
    expect(pages.flatMap(requestIds)).toEqual(all);
    expect(pages.map((text) => requestIds(text).length)).toEqual([PAGE, PAGE, 7]);
    expect(pages.map((text) => text.includes(">Newest</a>"))).toEqual([false, true, true]);
  });

  test("has a page that says so behind the last one", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    recordOf(app)({ rejects: [rejectsIn(app, 1)] });
    const text = await look(visitor, `/activity?before=${requestIdOf(0)}`);
    expect(requestIds(text)).toEqual([]);
    expect(text).toContain("There are no older reasons.");
    expect(text).toContain(">Newest</a>");
  });

  test("limits the size of a page, with 180 busy minutes", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const label = "b".repeat(100);
    const { record } = app.registry.mintKey({ desk: "alpha", label, expiresInMs: null });
    const deskId = deskIdOf(app, "alpha");
    const write = recordOf(app);
    const minute = Math.floor(Date.now() / 60_000) * 60_000;
    const counts = { stored: 99_999, duplicate: 9_999, rejected: 9_999, unauthorized: 0 };
    write({
      minutes: Array.from({ length: 180 }, (_, age) => {
        const start = minute - (179 - age) * 60_000;
        return { deskId, keyId: app.keyId, start, lastAt: start, ...counts };
      }),
    });
    const reasons = Object.fromEntries(
      numbered(10, "takeProfit").map(([name]) => [
        name,
        "must be one of: prediction_market, crypto, stock",
      ]),
    );
    const many = (fields: Readonly<Record<string, string>>, from: number) =>
      Array.from({ length: PAGE }, (_, index) => {
        const number = from + 10 * index;
        return rejectsOf([number, number + 1, number + 2, number + 3], Date.now() - 60_000, {
          deskId,
          keyId: record.id,
          reason: { ...sideIsRequired, fields, moreFields: number },
        });
      });
    write({ rejects: many(reasons, 0) });
    const usual = await look(visitor);
    expect(rows(usual).length).toBeGreaterThanOrEqual(179);
    expect(Buffer.byteLength(usual)).toBeLessThan(PAGE_BYTES_MAX);

    // The longest names, of characters that are longest in HTML.
    const long = numbered(10).map(([, index]) => [`${index}${'"'.repeat(98)}…`, "unknown field"]);
    write({ rejects: many(Object.fromEntries(long), 1_000) });
    expect(Buffer.byteLength(await look(visitor))).toBeLessThan(5 * PAGE_BYTES_MAX);
  });
});

describe("filters", () => {
  test("narrow the rejected requests by status, field, key and reason", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const second = mintKey(app.registry, "alpha");
    const unknown = { fields: { side: "required", "t p&s": "unknown field" } };
    recordOf(app)({
      rejects: [
        rejectsIn(app, 1, {}),
        rejectsIn(app, 2, unknown),
        { ...rejectsIn(app, 3, rateLimited), keyId: second.keyId },
      ],
    });
    const found = async (filter: string) =>
      requestIds(await look(visitor, `/activity?${filter}`)).map((id) => Number(id.slice(-12)));
    expect(await found("")).toEqual([3, 2, 1]);
    expect(await found("status=422")).toEqual([2, 1]);
    expect(await found("status=422&field=t+p%26s")).toEqual([2]);
    expect(await found("field=side")).toEqual([2, 1]);
    expect(await found(`key=${second.keyId}`)).toEqual([3]);
    expect(await found(`key=${second.keyId}&field=side`)).toEqual([]);
    const text = await look(visitor, "/activity?status=429");
    const [, reason = ""] = /data-id="([0-9a-f]{16})"/.exec(text) ?? [];
    expect(await found(`reason=${reason}`)).toEqual([3]);
    const none = await look(visitor, "/activity?field=nothing");
    expect(seen(none)).toContain("No rejected request matches these filters");
  });

  test("lead from a reason to all of its requests that are kept", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    for (let index = 0; index < 30; index++) await send(app, { ...signal, side: "up" });
    const text = await lookUntil(visitor, (now) => totals(now)[2] === "30");
    expect(requestIds(text).length).toBeLessThan(20);
    const [, more = ""] = /href="([^"]*reason=[^"]*)"/.exec(text) ?? [];
    const ids = requestIds(await look(visitor, decoded(more)));
    expect(new Set(ids).size).toBe(20);
  });
});

describe("what is asked for amiss", () => {
  test("is the usual page, but for a key, which is not here", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    recordOf(app)({ rejects: [rejectsIn(app, 1)] });
    for (const value of ["year", "", "__proto__", "constructor", HOSTILE, "x".repeat(2_000)]) {
      const encoded = encodeURIComponent(value);
      for (const path of ["/activity", "/activity/live"]) {
        const asked = ["per", "before", "status", "reason"].map((name) => `${name}=${encoded}`);
        const text = await look(visitor, `${path}?${asked.join("&")}`);
        expect(text).toContain(`data-width="60000"`);
        expect(text).not.toContain("<script>document");
        expect(requestIds(text)).toHaveLength(1);
      }
    }
    for (const key of ["0", HOSTILE, "0".repeat(26), app.keyId.toLowerCase()]) {
      for (const path of ["/activity", "/activity/live"]) {
        const { status } = await visitor.get(`${path}?key=${encodeURIComponent(key)}`);
        expect({ path, key, status }).toEqual({ path, key, status: 404 });
      }
    }
  });
});

describe("another desk's", () => {
  test("numbers, rejected requests and keys are nowhere", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const theirs = mintKey(app.registry, "beta");
    const { visitor: other } = await app.signUp("beta", "bob@example.com");
    await send(app, signal);
    await send(app, signal, theirs.key);
    await send(app, { ...signal, ours: 1 });
    await send(app, { ...signal, theirs: 1 }, theirs.key);
    await send(app, { ...signal, theirs: 2 }, theirs.key);
    const beta = await lookUntil(other, (text) => totals(text).join() === "1,0,2");
    const alpha = await lookUntil(visitor, (text) => totals(text).join() === "1,0,1");
    expect(alpha).toContain("<code>ours</code>");
    expect(alpha).not.toContain("theirs");
    expect(alpha).not.toContain(theirs.keyId);
    const [newest = "", oldest = ""] = requestIds(beta);
    for (const before of [newest, oldest]) {
      const text = await look(visitor, `/activity?before=${before}`);
      expect(text).not.toContain("theirs");
      for (const id of requestIds(text)) expect(requestIds(alpha)).toContain(id);
    }
    for (const path of ["/activity", "/activity/live"]) {
      const unknown = await visitor.get(`${path}?key=${"0".repeat(26)}`);
      const foreign = await visitor.get(`${path}?key=${theirs.keyId}`);
      expect([foreign.status, foreign.text]).toEqual([404, unknown.text]);
    }
  });
});

describe("where there is nothing", () => {
  test("a new desk is led to its first signal, and a quiet one to longer spans", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const fresh = await look(visitor);
    expect(fresh).toContain("No request yet");
    expect(fresh).toContain(`<a href="/start">Send the first one</a>`);
    expect(fresh).toContain("Nothing was rejected");
    const now = Date.now();
    const count = { stored: 3, duplicate: 0, rejected: 0, unauthorized: 0, lastAt: now };
    const start = Math.floor(now / 60_000) * 60_000 - 30 * 86_400_000;
    const deskId = deskIdOf(app, "alpha");
    recordOf(app)({ minutes: [{ deskId, keyId: app.keyId, start, ...count }] });
    const quiet = await look(visitor);
    expect(quiet).toContain("No request in the last 3 hours.");
    expect(quiet).toContain("Look at 90 days");
    expect(quiet).not.toContain("No request yet");
    expect(totals(await look(visitor, "/activity?per=day"))).toEqual(["3", "0", "0"]);
    const second = mintKey(app.registry, "alpha");
    expect(await look(visitor, `/activity?per=hour&key=${second.keyId}`)).toContain(
      "No request with this key in the last 7 days.",
    );
  });
});
