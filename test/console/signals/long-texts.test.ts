/** Long texts in the list of signals: each has so much room and no more, and the page stays small. */
import { describe, expect, test } from "bun:test";
import { activityWidths, startOfBucket } from "../../../src/domain/activity/activity.ts";
import { REJECT_FIELDS_MAX } from "../../../src/domain/activity/sent.ts";
import { UNKNOWN_FIELD } from "../../../src/domain/errors.ts";
import { MEMBERS_MAX } from "../../../src/domain/member/member.ts";
import { DAY_MS } from "../../../src/lib/text/time.ts";
import { shorten } from "../../../src/console/ui/words.ts";
import { minuteOf } from "../../domain/_activity.ts";
import { mintKey, signal } from "../../kit/setup.ts";
import { deskIdOf, reasonsIn, recordOf, rejectsIn } from "../activity/_activity-page.ts";
import { seen, useDesks, type Visitor } from "../_console.ts";

const newDesk = useDesks();

const PAGE = 50;
const PAGE_BYTES_MAX = 140_000;
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
  };
  test.each(Object.entries(texts))(
    "%s stays small, and each signal's own page has the whole text",
    async (_, text) => {
      const { app, visitor } = await newDesk();
      const label = Array.from(text).slice(0, 100).join("");
      const { key } = await mintKey(app.registry, app.desk, { label });
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

  test("is not offered by the filter", async () => {
    const { app, visitor } = await newDesk();
    for (const symbol of ["l".repeat(61), "short"]) await app.post({ ...signal, symbol });
    const { text } = await visitor.get("/signals");
    const suggested = [...text.matchAll(/<option value="([^"]+)"/g)].map(([, symbol]) => symbol);
    expect(suggested).toContain("short");
    expect(suggested).not.toContain("l".repeat(61));
  });
});

/** The texts that stand for symbols, as a reader sees them. */
function symbolsIn(html: string): string[] {
  return [
    ...html.matchAll(
      /(?:<th scope="row" class="main"><a [^>]*>|<dt>Symbol<\/dt><dd>)<bdi[^>]*>(.*?)<\/bdi>/g,
    ),
  ].map(([, text = ""]) => text.replaceAll("&quot;", '"'));
}

/** Pages write each character as six. */
const LABEL = '"'.repeat(96);

async function expectSmall(visitor: Visitor, path: string): Promise<string> {
  const { text, status } = await visitor.get(path);
  expect({ path, status }).toEqual({ path, status: 200 });
  expect(Buffer.byteLength(text), path).toBeLessThan(PAGE_BYTES_MAX);
  return text;
}

/** Invalid fields with names that are long. */
const fieldsOf = (number: number) =>
  Object.fromEntries(
    Array.from({ length: REJECT_FIELDS_MAX }, (_, index) => [
      `${number} ${index}${'"'.repeat(90)}`,
      UNKNOWN_FIELD,
    ]),
  );

describe("the largest", () => {
  test("number of keys, all about to expire, leaves the pages with keys small", async () => {
    const { app, visitor } = await newDesk();
    await app.registry.limitKeys(app.desk, 300);
    for (let index = 0; index < 250; index += 1) {
      await mintKey(app.registry, app.desk, {
        label: `${LABEL}${index}`,
        expiresInMs: index < 90 ? DAY_MS : null,
      });
    }
    const keys = await expectSmall(visitor, "/keys");
    expect(keys.match(/>Expiring soon</g)).toHaveLength(25);
    for (const path of ["/signals", "/activity"]) await expectSmall(visitor, path);
  });

  test("number of members with long addresses leaves their pages small", async () => {
    const { app, visitor } = await newDesk();
    for (let index = 1; index < MEMBERS_MAX; index += 1) {
      await app.members.invite(
        app.desk,
        `${String(index).padStart(3, "0")}${FOUR_BYTES.repeat(247)}@b.c`,
      );
    }
    const members = await expectSmall(visitor, "/members");
    expect(members.match(/New link/g)).toHaveLength(MEMBERS_MAX - 1);
    await expectSmall(visitor, "/audit");
  });

  test("number of reasons, each with many unknown fields, leaves the pages of activity small", async () => {
    const { app, visitor } = await newDesk();
    await app.registry.limitKeys(app.desk, 300);
    await app.registry.relabelKey(app.keyId, LABEL, { desk: app.desk });
    for (let index = 0; index < 120; index += 1) {
      await mintKey(app.registry, app.desk, { label: `${LABEL}${index}` });
    }
    const numbers = Array.from({ length: 60 }, (_, index) => index);
    const rejects = numbers.map((number) =>
      rejectsIn(app, number, { fields: fieldsOf(number), moreFields: 1_000 }),
    );
    const minute = startOfBucket(Date.now(), activityWidths.minute.ms);
    const owner = { deskId: deskIdOf(app), keyId: app.keyId };
    const counts = { stored: 1_000_000, duplicate: 1_000_000, rejected: 1_000_000 };
    const minutes = Array.from({ length: activityWidths.minute.kept }, (_, index) =>
      minuteOf(minute - index * activityWidths.minute.ms, { ...owner, ...counts }),
    );
    await recordOf(app)({ minutes: [...minutes, ...rejects] });
    const activity = await expectSmall(visitor, "/activity");
    const [first] = reasonsIn(activity);
    await expectSmall(visitor, first?.path ?? "");
  });

  test("values of filters are refused, and not repeated", async () => {
    const { visitor } = await newDesk();
    for (const [path, problem] of [
      [`/signals?symbol=${"x".repeat(5_000)}`, "symbol has at most 512 characters"],
      [`/signals?side=${"x".repeat(5_000)}`, "side"],
      [`/audit?by=${"x".repeat(5_000)}`, "No matches yet"],
      [`/activity?field=${"x".repeat(5_000)}`, "No rejected request matches these filters"],
    ] as const) {
      const { text } = await visitor.get(path);
      expect(seen(text), path).toContain(problem);
      expect(text, path).not.toContain("x".repeat(300));
    }
  });
});

test("an API key that was pasted into a filter is not repeated", async () => {
  const { app, visitor } = await newDesk();
  for (const path of [
    "/signals?symbol=",
    "/signals?from=",
    "/signals?find=",
    "/audit?by=",
    "/activity?field=",
  ]) {
    const { text } = await visitor.get(path + app.key);
    expect(text, path).not.toContain(app.key.slice(0, 12));
  }
});
