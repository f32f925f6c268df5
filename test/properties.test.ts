/** What was accepted reads back as it was sent, over the whole space of signals. */
import { expect, setDefaultTimeout, test } from "bun:test";
import * as fc from "fast-check";
import { BODY_BYTES_MAX } from "../src/domain/signal.ts";
import { query, signal, startTestApp } from "./_setup.ts";

setDefaultTimeout(60_000);

/** Each run is a request and a look into the database. */
const RUNS = { numRuns: 100 };

/** A character that is anything but a control character or half of a pair. */
const character = fc.oneof(
  fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }),
  fc.constantFrom(
    "\u00a0",
    "\u200d",
    "\u202e",
    "\u2028",
    "\ufeff",
    "\ufffd",
    "\uffff",
    "\u{10ffff}",
  ),
  fc.constantFrom("'", '"', "\\", "/", "%", "_", ";", "--", "e\u0301", "é", "ß"),
);
const plain = (charactersMax: number): fc.Arbitrary<string> =>
  fc
    .oneof(
      fc.array(character, { minLength: 1, maxLength: 20 }),
      character.map((one) => Array.from({ length: 600 }, () => one)),
    )
    .map((all) =>
      Array.from(all.join("").replaceAll(/\p{Cc}/gu, "x"))
        .slice(0, charactersMax)
        .join(""),
    );

/** A string's JSON text, each character raw or escaped as the numbers have it. */
function encode(text: string, choices: readonly number[]): string {
  const parts = Array.from(text).map((one, index) => {
    const quoted = JSON.stringify(one).slice(1, -1);
    const choice = choices[index % choices.length] ?? 0;
    if (choice === 0 || (choice === 1 && quoted.length > one.length)) return quoted;
    const units = Array.from({ length: one.length }, (_, at) => one.charCodeAt(at));
    const escaped = units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
    return choice === 2 ? escaped : escaped.replaceAll(/[a-f]/g, (digit) => digit.toUpperCase());
  });
  return `"${parts.join("")}"`;
}

const choices = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 7 });
const jsonString = (text: fc.Arbitrary<string>) =>
  fc.tuple(text, choices).map(([value, how]) => ({ value, text: encode(value, how) }));

const digits = (min: number, max: number) =>
  fc.string({
    unit: fc.constantFrom("0", "1", "2", "5", "8", "9"),
    minLength: min,
    maxLength: max,
  });

/** The text of a JSON number: any sign, length, fraction and exponent. */
const anyNumber = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.oneof(
      fc.constant("0"),
      digits(1, 40).map((text) => text.replace(/^0+(?=.)/, "")),
    ),
    fc.oneof(
      fc.constant(""),
      digits(1, 40).map((text) => `.${text}`),
    ),
    fc.oneof(
      fc.constant(""),
      fc
        .tuple(fc.constantFrom("e", "E"), fc.constantFrom("", "+", "-"), digits(1, 3))
        .map((parts) => parts.join("")),
    ),
  )
  .map((parts) => parts.join(""));

const finiteNumber = fc
  .oneof(
    anyNumber,
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
    fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }).map(String),
    fc.constantFrom("-0", "0.1", "9007199254740993", "9223372036854775807", "9223372036854775808"),
    fc.constantFrom(
      "-9223372036854775808",
      "-9223372036854775809",
      "18446744073709551615",
      "5e-324",
    ),
  )
  .filter((text) => Number.isFinite(Number(text)));

const wholeNumber = fc
  .tuple(
    fc.oneof(
      fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
      fc.constantFrom(0, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53 - 1),
    ),
    fc.constantFrom("", ".0", ".000", "e0", "E+00", "e-0", ".0e0"),
  )
  .map(([value, suffix]) => `${value}${suffix}`);

const whiteSpace = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\r"), maxLength: 3 });

/** The text of an object, white space and all; names are unique as they are decoded. */
const { object: objectText } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "medium" },
    fc.constantFrom("null", "true", "false", "1e999", "[]", "{}"),
    anyNumber,
    jsonString(fc.string({ unit: "binary", maxLength: 10 })).map(({ text }) => text),
    fc
      .tuple(fc.array(tie("value"), { maxLength: 4 }), whiteSpace)
      .map(([items, space]) => `[${space}${items.join(`${space},`)}${space}]`),
    tie("object"),
  ),
  object: fc
    .tuple(
      fc.uniqueArray(
        fc.tuple(
          jsonString(
            fc.oneof(fc.string({ unit: "binary", maxLength: 8 }), fc.constantFrom("__proto__", "")),
          ),
          tie("value"),
        ),
        { maxLength: 12, selector: ([name]) => name.value },
      ),
      whiteSpace,
      whiteSpace,
    )
    .map(([members, a, b]) => {
      const texts = members.map(([name, value]) => `${a}${name.text}${b}:${a}${value}${b}`);
      return `{${texts.join(",")}${members.length === 0 ? a : ""}}`;
    }),
}));

const oneOf = (...values: string[]) => jsonString(fc.constantFrom(...values));

/** Each field with its value as stored and the text that it is sent as. */
const fieldArbitraries = {
  source: oneOf("venue_1", "venue_2", "venue_3"),
  type: oneOf("prediction_market", "crypto", "stock"),
  symbol: jsonString(plain(512)),
  side: oneOf("open", "close"),
  direction: oneOf("long", "short", "buy", "sell"),
  price: finiteNumber.map((text) => ({ value: Number(text), text })),
  quantity: finiteNumber.map((text) => ({ value: Number(text), text })),
  signal_time: wholeNumber.map((text) => ({ value: Number(text), text })),
  client_signal_id: jsonString(plain(200)),
  metadata: objectText.map((text) => ({ value: text, text })),
};
type Field = keyof typeof fieldArbitraries;
const fieldNames = Object.keys(fieldArbitraries) as Field[];

type Fields = Partial<Record<Field, { value: string | number; text: string }>>;

const anySignal = fc.record({
  fields: fc.record<Fields>(fieldArbitraries, {
    requiredKeys: ["source", "type", "symbol", "side"],
  }),
  order: fc.shuffledSubarray(fieldNames, { minLength: fieldNames.length }),
  how: choices,
  space: whiteSpace,
});

type AnySignal = typeof anySignal extends fc.Arbitrary<infer T> ? T : never;

/** The body, with a prefix that makes the id one of this run alone. */
function compose({ fields, order, how, space }: AnySignal, idPrefix: string): string {
  const members = order.flatMap((name) => {
    const text = fields[name]?.text;
    if (text === undefined) return [];
    const value = name === "client_signal_id" ? `"${idPrefix}${text.slice(1)}` : text;
    return [`${encode(name, how)}${space}:${value}${space}`];
  });
  return `${space}{${space}${members.join(`,${space}`)}}${space}`;
}

test("any accepted signal reads back exactly, and a repeat of it differs in nothing", async () => {
  const { post, dataDir } = await startTestApp();
  let sequence = 0;
  await fc.assert(
    fc.asyncProperty(anySignal, async (generated) => {
      const { fields } = generated;
      const idPrefix = `${sequence++}-`;
      const body = compose(generated, idPrefix);
      fc.pre(Buffer.byteLength(body) <= BODY_BYTES_MAX);
      const { status, body: answer } = await post(body);
      expect(status).toBe(201);
      const rows = query<Record<Field, string | number | null>>(
        dataDir,
        `SELECT ${fieldNames.join(", ")} FROM signals WHERE id = ?`,
        answer["id"] as string,
      );
      expect(rows).toHaveLength(1);
      for (const name of fieldNames) {
        const stored = rows[0]?.[name];
        const sent = fields[name]?.value ?? null;
        if (name === "client_signal_id" && sent !== null) {
          expect(stored).toBe(`${idPrefix}${sent}`);
        } else if (typeof sent === "number") {
          // SQLite does not keep the sign of zero.
          expect(Object.is(Number(stored) + 0, sent + 0)).toBe(true);
        } else expect(stored).toBe(sent);
      }
      const repeat = await post(body);
      expect([repeat.status, repeat.headers.get("X-Duplicate-Differs")]).toEqual([
        fields.client_signal_id === undefined ? 201 : 200,
        null,
      ]);
    }),
    RUNS,
  );
  const ids = query<{ id: string }>(dataDir, "SELECT id FROM signals ORDER BY seq");
  const texts = ids.map(({ id }) => id);
  expect(texts).toEqual(texts.toSorted());
  expect(new Set(texts).size).toBe(texts.length);
  expect(texts.length).toBeGreaterThan(RUNS.numRuns);
});

test("any JSON value at all gets a documented answer, and is stored only with a 201", async () => {
  const { post, dataDir } = await startTestApp();
  // What a client can get wrong: our names with other values, other names, other things at the top.
  const name = fc.oneof(fc.constantFrom(...fieldNames), fc.string({ unit: "binary" }));
  const almost = fc.dictionary(name, fc.jsonValue()).map((some) => ({ ...signal, ...some }));
  const seen = new Set<number>();
  let stored = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.json(),
        fc.jsonValue().map((value) => JSON.stringify(value)),
        almost.map((value) => JSON.stringify(value)),
      ),
      async (text) => {
        const { status } = await post(text);
        expect([200, 201, 400, 413, 422]).toContain(status);
        seen.add(status);
        if (status === 201) stored += 1;
      },
    ),
    { numRuns: 200 },
  );
  expect(seen.has(400)).toBe(true);
  expect(seen.has(422)).toBe(true);
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: stored }]);
});

test("any bytes at all get a documented answer", async () => {
  const { post, dataDir } = await startTestApp();
  const whole = Buffer.from(JSON.stringify(signal));
  const damaged = fc
    .tuple(fc.nat({ max: whole.length }), fc.nat({ max: 3 }), fc.uint8Array({ maxLength: 4 }))
    .map(([at, remove, add]) =>
      Buffer.concat([whole.subarray(0, at), add, whole.subarray(at + remove)]),
    );
  let stored = 0;
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.uint8Array({ maxLength: 200 }), damaged), async (bytes) => {
      const { status } = await post(new Uint8Array(bytes));
      expect([201, 400, 422]).toContain(status);
      if (status === 201) stored += 1;
    }),
    { numRuns: 200 },
  );
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: stored }]);
});
