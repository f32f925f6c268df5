/** Rejected requests by reason: the list of reasons, and the page of one. */
import { describe, expect, test } from "bun:test";
import { describeField, errors } from "../../../src/console/pages/activity/labels.ts";
import { rateLimited, rejectsOf, requestIdOf } from "../../domain/_activity.ts";
import { mintKey, signal } from "../../kit/setup.ts";
import {
  deskIdOf,
  look,
  lookUntil,
  reasonsIn,
  recordOf,
  rejectsIn,
  requestIds,
  send,
  totals,
} from "./_activity-page.ts";
import { nextIn, seen, useDesks, type Visitor } from "../_console.ts";

const newDesk = useDesks();

const PAGE = 25;
const HOSTILE = `"><script>document.title='taken'</script>`;

const older = (text: string) => nextIn(text) ?? "";

function numbered(count: number, name = "field"): [string, number][] {
  return Array.from({ length: count }, (_, index) => [`${name}${index}`, index]);
}

/** Waits for so many reasons, and opens the first, which is the latest. */
async function open(visitor: Visitor, count = 1): Promise<string> {
  const list = await lookUntil(visitor, (text) => reasonsIn(text).length === count);
  return look(visitor, reasonsIn(list)[0]?.path);
}

test("an unknown field is shown with the API's hint", () => {
  expect(describeField("symbl", "unknown field")).toBe(
    "is an unknown field (did you mean symbol?)",
  );
  expect(describeField("zzz", "unknown field")).toBe("is an unknown field");
});

describe("the list of reasons", () => {
  test("has a row per reason, with status, fields in plain words, key, count and time", async () => {
    const { app, visitor } = await newDesk();
    const { key } = await mintKey(app.registry, app.desk, { label: "bot-7" });
    await send(app, { ...signal, side: undefined, sied: "open" });
    await send(app, { ...signal, side: undefined, sied: "close" }, key);
    await send(app, "{");
    const [json, fields, ...others] = reasonsIn(
      await lookUntil(visitor, (text) => totals(text)[2] === "3"),
    );
    expect(others).toEqual([]);
    expect(json?.text).toMatch(/^400 The body is not a valid JSON object 1 \d s ago …\w{4}/);
    expect(fields?.text).toMatch(
      new RegExp(
        `^422 side is required; sied is an unknown field 2 \\d s ago bot-7 …${key.slice(-4)} \\+1`,
      ),
    );
  });

  test("names a few fields, and says how many more there are", async () => {
    const { app, visitor } = await newDesk();
    await send(app, { ...signal, ...Object.fromEntries(numbered(12)) });
    const text = await open(visitor);
    expect(reasonsIn(await look(visitor))[0]?.text).toContain(
      "field2 is an unknown field and 9 more",
    );
    expect([...text.matchAll(/<code>field/g)]).toHaveLength(10);
    expect(text).toContain("and 2 more fields<");
  });

  test("escapes field names that clients chose", async () => {
    const { app, visitor } = await newDesk();
    await send(app, { ...signal, [HOSTILE]: 1, ["w".repeat(400)]: 2 });
    await send(app, `{"__proto__":1,"constructor":2}`);
    const text = await open(visitor, 2);
    expect(text).toContain("<code>__proto__</code> is an unknown field");
    expect(text).toContain("<code>constructor</code>");
    const [, second] = reasonsIn(await look(visitor));
    for (const path of ["/activity", second?.path]) {
      const page = await look(visitor, path);
      expect(page).not.toContain("<script>document");
      expect(page).toContain("<code>&quot;>&lt;script>document.title='taken'&lt;/script></code>");
    }
  });

  test("shows each reason once, the latest first", async () => {
    const { app, visitor } = await newDesk();
    const write = recordOf(app);
    const count = PAGE + 7;
    await write({ minutes: Array.from({ length: count }, (_, index) => rejectsIn(app, index)) });
    const pages = [await look(visitor, `/activity?per=hour&key=${app.keyId}&status=422`)];
    for (let next = older(pages[0] ?? ""); next !== ""; next = older(pages.at(-1) ?? "")) {
      // What arrives meanwhile moves nothing.
      await write({ minutes: [rejectsIn(app, count + pages.length)] });
      expect(next).toStartWith(`/activity?per=hour&key=${app.keyId}&status=422&before=`);
      pages.push(await look(visitor, next));
    }
    const found = pages.map((text) => reasonsIn(text).map(({ text: row }) => row));
    expect(found.map((texts) => texts.length)).toEqual([PAGE, 7]);
    const more = found.flat().map((row) => /and (\d+) more/.exec(row)?.[1] ?? "0");
    expect(more).toEqual(Array.from({ length: count }, (_, index) => String(index)).toReversed());
    expect(pages.map((text) => text.includes(">Newest</a>"))).toEqual([false, true]);
  });
});

async function startFiltered() {
  const { app, visitor } = await newDesk();
  const second = await mintKey(app.registry, app.desk);
  const unknown = { fields: { side: "required", "t p&s": "unknown field" } };
  await recordOf(app)({
    minutes: [
      rejectsIn(app, 1, {}),
      rejectsIn(app, 2, unknown),
      rejectsIn(app, 3, rateLimited, second.keyId),
    ],
  });
  return { app, visitor, second };
}

describe("filters", () => {
  test("narrow the rejected requests by status, field and key", async () => {
    const { visitor, second } = await startFiltered();
    const found = async (filter: string) =>
      reasonsIn(await look(visitor, `/activity?${filter}`)).map(({ text }) => text.slice(0, 8));
    const [flood, both, side] = ["429 Sent", "422 side", "422 side"];
    expect(await found("")).toEqual([flood, both, side]);
    expect(await found("status=422")).toEqual([both, side]);
    expect(await found("status=422&field=t+p%26s")).toEqual([both]);
    expect(await found("field=side")).toEqual([both, side]);
    expect(await found(`key=${second.keyId}`)).toEqual([flood]);
    expect(await found(`key=${second.keyId}&field=side`)).toEqual([]);
    const none = await look(visitor, "/activity?field=nothing");
    expect(seen(none)).toContain("No rejected request matches these filters");
  });

  test("are chips that can be removed, and fields of a form that keeps the others", async () => {
    const { visitor, second } = await startFiltered();
    const both = await look(visitor, "/activity?per=hour&status=422&field=t+p%26s");
    expect(both).toContain(
      `<a href="/activity?per=hour&amp;field=t+p%26s" aria-label="Remove the filter Status">`,
    );
    expect(both).toContain(
      `<a href="/activity?per=hour&amp;status=422" aria-label="Remove the filter Field">`,
    );
    const one = await look(visitor, `/activity?status=422&key=${second.keyId}`);
    expect(one).toContain("Add filter");
    expect(one).toContain(`<input type="hidden" name="key" value="${second.keyId}"/>`);
    expect(one).toContain(`<option value="422" selected`);
  });
});

describe("the page of a reason", () => {
  test("says what to do, what was answered, and each of the latest requests", async () => {
    const { app, visitor } = await newDesk();
    const answer = await app.post({ ...signal, side: "up", sied: "open" });
    const text = await open(visitor);
    expect(requestIds(text)).toEqual([answer.headers.get("x-request-id") ?? ""]);
    for (const part of [
      `href="/keys/${app.keyId}"`,
      "validation_failed",
      "<code>side</code> must be one of: open, close",
      "<code>sied</code> is an unknown field",
      errors.validation_failed.remedy,
      `data-copy="#r-${requestIds(text)[0]}"`,
    ]) {
      expect(text).toContain(part);
    }
  });

  test("has the message of each request where it differs", async () => {
    const { app, visitor } = await newDesk();
    await send(app, "{");
    await send(app, `{"a":1,"a":2}`);
    const text = seen(await lookUntil(visitor, (page) => totals(page)[2] === "2"));
    expect(text).not.toContain("character");
    const page = seen(await open(visitor));
    expect(page).toContain(errors.bad_request.remedy);
    expect(page).toContain("a duplicate member name, at character 8");
    expect(page).toContain("it has a syntax error");
    expect(page.split("The body is not a valid JSON object")).toHaveLength(2);
  });

  test("has the latest 20 requests, or those of one key", async () => {
    const { app, visitor } = await newDesk();
    const second = await mintKey(app.registry, app.desk);
    const now = Date.now() - 60_000;
    const deskId = deskIdOf(app);
    const numbers = Array.from({ length: 30 }, (_, index) => index);
    await recordOf(app)({
      minutes: [
        rejectsOf(numbers, now, { deskId, keyId: app.keyId }),
        rejectsOf([99], now, { deskId, keyId: second.keyId }),
      ],
    });
    const page = await open(visitor);
    const latest = numbers.slice(11).toReversed().map(requestIdOf);
    expect(requestIds(page)).toEqual([requestIdOf(99), ...latest]);
    expect(seen(page)).toContain("Requests, last 90 days31");
    const [row] = reasonsIn(await look(visitor, `/activity?key=${second.keyId}`));
    expect(page).toContain(`href="${row?.path}"`);
    const narrowed = await look(visitor, row?.path);
    expect(requestIds(narrowed)).toEqual([requestIdOf(99)]);
    expect(seen(narrowed)).toContain("Requests, last 90 days1");
    for (const path of ["0", "0".repeat(16), `${row?.id}?key=${"0".repeat(26)}`, HOSTILE]) {
      expect((await visitor.get(`/activity/rejects/${path}`)).status).toBe(404);
    }
  });

  test("says that its key was revoked, or has expired", async () => {
    const { app, visitor } = await newDesk();
    const short = await mintKey(app.registry, app.desk, { expiresInMs: 1 });
    await app.registry.revokeKey(app.keyId);
    expect([await send(app, signal), await send(app, signal, short.key)]).toEqual([401, 401]);
    await lookUntil(visitor, (text) => totals(text)[2] === "2");
    const text = await open(visitor);
    expect(text).toContain(`<span class="tag bad">Revoked</span>`);
    expect(text).toContain(`<span class="tag calm">Expired</span>`);
  });
});
