/** Rejected requests by reason: the list of reasons, and the page of one. */
import { expect, test } from "bun:test";
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

test("the list has a row per reason, with status, fields in plain words, key, count and time", async () => {
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

test("a few of the fields that a client made up are named, and escaped", async () => {
  const { app, visitor } = await newDesk();
  const many = Array.from({ length: 11 }, (_, index) => [`field${index}`, index] as const);
  await send(app, { ...signal, [HOSTILE]: 1, ...Object.fromEntries(many) });
  const text = await open(visitor);
  const list = await look(visitor);
  expect(reasonsIn(list)[0]?.text).toContain("field1 is an unknown field and 9 more");
  expect([...text.matchAll(/<code>field/g)]).toHaveLength(9);
  expect(text).toContain("and 2 more fields<");
  for (const page of [text, list]) {
    expect(page).not.toContain("<script>document");
    expect(page).toContain("<code>&quot;>&lt;script>document.title='taken'&lt;/script></code>");
  }
});

test("each reason is on one page, the latest first, while others arrive", async () => {
  const { app, visitor } = await newDesk();
  const write = recordOf(app);
  const count = PAGE + 7;
  await write({ minutes: Array.from({ length: count }, (_, index) => rejectsIn(app, index)) });
  const path = `/activity?per=hour&key=${app.keyId}&status=422`;
  const first = await look(visitor, path);
  await write({ minutes: [rejectsIn(app, count)] });
  const next = nextIn(first) ?? "";
  expect(next).toStartWith(`${path}&before=`);
  const second = await look(visitor, next);
  const found = [first, second].flatMap((text) =>
    reasonsIn(text).map((row) => /and (\d+) more/.exec(row.text)?.[1] ?? "0"),
  );
  expect(found).toEqual(Array.from({ length: count }, (_, index) => String(index)).toReversed());
  expect(nextIn(second)).toBeNull();
  expect([first, second].map((text) => text.includes(">Newest</a>"))).toEqual([false, true]);
});

test("filters narrow the list, are chips that can be removed, and stay with each other", async () => {
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
  const found = async (filter: string) =>
    reasonsIn(await look(visitor, `/activity?${filter}`)).map(({ text }) => text.slice(0, 8));
  expect(await found("")).toEqual(["429 Sent", "422 side", "422 side"]);
  expect(await found("status=422&field=t+p%26s")).toEqual(["422 side"]);
  expect(await found(`key=${second.keyId}`)).toEqual(["429 Sent"]);
  const none = await look(visitor, `/activity?key=${second.keyId}&field=side`);
  expect(seen(none)).toContain("No rejected request matches these filters");

  const both = await look(visitor, "/activity?per=hour&status=422&field=t+p%26s");
  for (const [name, others] of [
    ["Status", "field=t+p%26s"],
    ["Field", "status=422"],
  ]) {
    const remove = `aria-label="Remove the filter ${name}"`;
    expect(both).toContain(`<a href="/activity?per=hour&amp;${others}" ${remove}>`);
  }
  const one = await look(visitor, `/activity?status=422&key=${second.keyId}`);
  expect(one).toContain(`<input type="hidden" name="key" value="${second.keyId}"/>`);
  expect(one).toContain(`<option value="422" selected`);
});

test("the page of a reason says what to do, and what was answered, with each message that differs", async () => {
  const { app, visitor } = await newDesk();
  const answer = await app.post({ ...signal, side: "up", sied: "open" });
  const id = answer.headers.get("x-request-id") ?? "";
  const text = await open(visitor);
  expect(requestIds(text)).toEqual([id]);
  for (const part of [
    `href="/keys/${app.keyId}"`,
    "validation_failed",
    "<code>side</code> must be one of: open, close",
    "<code>sied</code> is an unknown field",
    errors.validation_failed.remedy,
    `data-copy="#r-${id}"`,
  ]) {
    expect(text).toContain(part);
  }
  expect(seen(text)).not.toContain("Details");
  await send(app, "{");
  await send(app, `{"a":1,"a":2}`);
  await lookUntil(visitor, (page) => totals(page)[2] === "3");
  const page = seen(await open(visitor, 2));
  expect(page).toContain(errors.bad_request.remedy);
  expect(page).toContain("a duplicate member name, at character 8");
  expect(page).toContain("it has a syntax error");
  expect(page.split("The body is not a valid JSON object")).toHaveLength(2);
});

test("the page of a reason has the latest 20 requests, or those of one key", async () => {
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

test("the page of a reason says that its key was revoked, or has expired", async () => {
  const { app, visitor } = await newDesk();
  const short = await mintKey(app.registry, app.desk, { expiresInMs: 1 });
  await app.registry.revokeKey(app.keyId);
  expect([await send(app, signal), await send(app, signal, short.key)]).toEqual([401, 401]);
  await lookUntil(visitor, (text) => totals(text)[2] === "2");
  const text = await open(visitor);
  expect(text).toContain(`<span class="tag bad">Revoked</span>`);
  expect(text).toContain(`<span class="tag calm">Expired</span>`);
});
