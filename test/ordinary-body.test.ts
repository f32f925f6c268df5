/**
 * The short way through a body (`ordinary-body.ts`) against the strict reader: it takes the bodies that
 * clients send, and gives nothing that the strict reader would not give.
 */
import { expect, setDefaultTimeout, spyOn, test } from "bun:test";
import * as fc from "fast-check";
import { AppError } from "../src/domain/errors.ts";
import { fieldRule } from "../src/domain/fields.ts";
import { decodeUtf8 } from "../src/domain/ijson.ts";
import { type Field, ORDINARY_BYTES_MAX, ordinaryReader } from "../src/domain/ordinary-body.ts";
import {
  parseSignal,
  readOrdinary,
  readStrictly,
  type Signal,
  SignalBody,
} from "../src/domain/signal.ts";
import { bodyOf, hostileBody } from "./hostile/bodies.ts";

// Tens of thousands of runs on a machine that may be busy.
setDefaultTimeout(60_000);

const RUNS = 20_000;

/** A signal with all fields, as the text of each. */
const whole: Readonly<Record<string, string>> = {
  source: '"venue_2"',
  type: '"crypto"',
  symbol: '"BTC/USDT"',
  side: '"open"',
  direction: '"long"',
  price: "64250.5",
  quantity: "0.25",
  signal_time: "1790000000000",
  client_signal_id: '"6f0b8a52-3a5c-4b87-9d57-0e4f2b1c7a11"',
  metadata: '{"take_profit":66000,"stop_loss":63000}',
};
const required = ["source", "type", "symbol", "side"];

const membersOf = (texts: Readonly<Record<string, string>>): string[] =>
  Object.entries(texts).map(([name, text]) => `"${name}":${text}`);
const bodyWith = (texts: Readonly<Record<string, string>>): string =>
  `{${membersOf({ ...whole, ...texts }).join(",")}}`;
/** The same with one member in front of the others. */
const bodyFrom = (name: string, texts: Readonly<Record<string, string>>): string => {
  const { [name]: text = "", ...rest } = { ...whole, ...texts };
  return `{${membersOf({ [name]: text, ...rest }).join(",")}}`;
};
const more = (...members: string[]): string => `{${[...membersOf(whole), ...members].join(",")}}`;
const first = (...members: string[]): string => `{${[...members, ...membersOf(whole)].join(",")}}`;
const nested = (levels: number, open = '{"a":', close = "}"): string =>
  `{"x":${open.repeat(levels)}1${close.repeat(levels)}}`;

/** A signal, or what is wrong; as text, so that -0 and 0 differ, and the order of fields counts. */
function outcome(read: () => Signal): string {
  try {
    return JSON.stringify(read(), (_, value: unknown) => (Object.is(value, -0) ? "-0" : value));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return JSON.stringify([error.code, error.message, error.detail]);
  }
}

/** Whether the short way was taken. Fails where it, or the whole, differs from the strict reader. */
function compare(bytes: Uint8Array): boolean {
  const strict = outcome(() => readStrictly(decodeUtf8(bytes)));
  expect(outcome(() => parseSignal(bytes))).toBe(strict);
  const ordinary = readOrdinary(bytes, decodeUtf8(bytes));
  if (ordinary !== null) expect(outcome(() => ordinary)).toBe(strict);
  return ordinary !== null;
}

const isOrdinary = (text: string): boolean => compare(new TextEncoder().encode(text));

const ordinary: Record<string, string> = {
  "all fields": bodyWith({}),
  "the required fields": JSON.stringify({
    source: "venue_1",
    type: "stock",
    symbol: "AAPL",
    side: "close",
  }),
  "spaces, as Python has them": `{${membersOf(whole).join(", ").replaceAll('":', '": ')}}`,
  "lines and tabs": `\r\n{\n${membersOf(whole).join(" ,\n\t").replaceAll('":', '"\t\r\n : ')}\n}\n`,
  "spaces behind every value": `{${membersOf(whole).join(" ,")} }`,
  "a byte order mark": `\ufeff${bodyWith({})}`,
  "the fields in reverse": `{${membersOf(whole).toReversed().join(",")}}`,
  "the fields by name": `{${membersOf(whole).toSorted().join(",")}}`,
  "no metadata": `{${membersOf(whole).slice(0, -1).join(",")}}`,
  "the time last": `{${[...membersOf(whole).toSpliced(7, 1), membersOf(whole)[7]].join(",")}}`,
  "the most bytes": bodyWith({}).padEnd(ORDINARY_BYTES_MAX),
  "other alphabets": bodyWith({ symbol: '"São Paulo 😀 한 e\u0301\u2028"' }),
  "a slash as PHP has it, and a quote": bodyWith({ symbol: '"BTC\\/USDT \\"x\\" \\\\"' }),
  "braces in strings": bodyWith({
    symbol: '"{a}}{["',
    metadata: '{"}":"{","a":"\\"}","b\\\\":"\\\\"}',
  }),
  "the names of fields in metadata": bodyWith({
    metadata: '{"signal_time":1.5,"metadata":{"metadata":1},"source":"signal_time"}',
  }),
  "metadata first, with the names of fields": bodyFrom("metadata", {
    metadata: '{"signal_time":1.5,"metadata":{}}',
  }),
  "white space in metadata": bodyWith({ metadata: '{ "a" :\t[ 1 , { } , null ]\n}' }),
  "numbers beyond a double in metadata": bodyWith({
    metadata: '{"a":1e999,"b":123456789012345678901234567890,"c":1.10}',
  }),
  "names that objects have": bodyWith({
    metadata: '{"__proto__":{"a":"b"},"constructor":1,"toString":"x","":{}}',
  }),
  "names that are numbers": bodyWith({ metadata: '{"1":"a","0":"b","00":"c","-1":1}' }),
  "the same name in two objects": bodyWith({ metadata: '{"a":{"a":1},"b":[{"a":1},{"a":1}]}' }),
  "the deepest nesting": bodyWith({ metadata: nested(30) }),
  "the deepest nesting of arrays": bodyWith({ metadata: nested(30, "[", "]") }),
  "the longest strings": bodyWith({
    symbol: `"${"😀".repeat(512)}"`,
    client_signal_id: `"${"é".repeat(255)}"`,
  }),
  "numbers of any form": bodyWith({ price: "-0", quantity: "1.5E-3" }),
  "the first millisecond": bodyWith({ signal_time: "0" }),
  "the last millisecond": bodyWith({ signal_time: "9007199254740991" }),
  "much metadata": bodyWith({
    metadata: `{"a":[${Array.from({ length: 400 }, (_, n) => `{"id":"${n}"}`).join(",")}]}`,
  }),
};

test.each(Object.entries(ordinary))("the short way is taken: %s", (_, text) => {
  expect(isOrdinary(text)).toBe(true);
});

test("the short way is the first that is tried", () => {
  using parse = spyOn(JSON, "parse");
  parseSignal(new TextEncoder().encode(bodyWith({})));
  expect(parse).toHaveBeenCalledTimes(1);
});

/** Most are not valid. Where one is, the short way cannot be sure of it, or does not try. */
const others: Record<string, string> = {
  "no JSON": bodyWith({}).slice(1),
  "text behind": `${bodyWith({})}x`,
  "a byte too many": bodyWith({}).padEnd(ORDINARY_BYTES_MAX + 1),
  "an array": `[${bodyWith({})}]`,
  null: "null",
  "a string": '"venue_1"',
  "a field twice": more('"side":"open"'),
  "metadata twice": more('"metadata":{}'),
  "an unknown field": more('"a":1'),
  "an unknown field without a name": more('"":1'),
  "an unknown __proto__": more('"__proto__":{}'),
  "a name twice in metadata": bodyWith({ metadata: '{"a":1,"a":1}' }),
  "a name twice in an array": bodyWith({ metadata: '{"x":[0,{"a":"1","b":"2","a":"3"}]}' }),
  "a name twice, deeper": bodyWith({ metadata: '{"x":{"y":{"a":1,"a":1}}}' }),
  "__proto__ twice": bodyWith({ metadata: '{"__proto__":1,"__proto__":1}' }),
  "a number twice": bodyWith({ metadata: '{"0":1,"0":1}' }),
  "a name twice, one with a string for each lost quote": bodyWith({
    metadata: '{"a":["1","2"],"a":["1","2","3"]}',
  }),
  "a name twice by an escape": bodyWith({ metadata: '{"\\/":1,"/":1}' }),
  "a name twice by a code": bodyWith({ metadata: '{"a":1,"\\u0061":1}' }),
  "half of a pair": bodyWith({ metadata: '{"a":"\\ud800"}' }),
  "half of a pair in a name": bodyWith({ metadata: '{"\\udfff":1}' }),
  "half of a pair behind a backslash": bodyWith({ symbol: '"\\\\\\ud800"' }),
  "metadata by a code, and in it": `{"\\u006detadata":{"metadata":{"a":1}},${membersOf(whole).slice(0, 4).join(",")}}`,
  "a time by a code, and one in metadata": `{${membersOf(whole).slice(0, 4).join(",")},"metadata":{},"\\u0073ignal_time":1.00000000000000000001,"price":1}`,
  "nesting of 33": bodyWith({ metadata: nested(31) }),
  "nesting of 33 in arrays": bodyWith({ metadata: nested(31, "[", "]") }),
  "nesting without end": bodyWith({ metadata: nested(3_000, "[", "]") }),
  "a price that is infinite": bodyWith({ price: "1e999" }),
  "a price that is a string": bodyWith({ price: '"1"' }),
  "a price that is null": bodyWith({ price: "null" }),
  "a price that is an object": bodyWith({ price: '{"metadata":{}}' }),
  "an enum of another case": bodyWith({ side: '"OPEN"' }),
  "a symbol that is empty": bodyWith({ symbol: '""' }),
  "a symbol that is too long": bodyWith({ symbol: `"${"a".repeat(513)}"` }),
  "a symbol with a control character": bodyWith({ symbol: '"a\\nb"' }),
  "a symbol with DEL": bodyWith({ symbol: '"\u007f"' }),
  "a symbol with a raw control character": bodyWith({ symbol: '"a\nb"' }),
  "a time with a fraction that a double loses": bodyWith({
    signal_time: "1790000000000.00000000001",
  }),
  "a time with a fraction, metadata first": bodyFrom("metadata", {
    metadata: '{"signal_time":1}',
    signal_time: "1.00000000000000000001",
  }),
  "a time with a fraction, and a string before it": bodyFrom("symbol", {
    symbol: '"signal_time"',
    signal_time: "1.00000000000000000001",
  }),
  "a time with a fraction, and a string before it that ends metadata": bodyFrom("metadata", {
    metadata: '{"a":"signal_time"}',
    signal_time: "1.00000000000000000001",
  }),
  "a time with an exponent": bodyWith({ signal_time: "1e3" }),
  "a time that underflows": bodyWith({ signal_time: "0e-1" }),
  "a negative time": bodyWith({ signal_time: "-1" }),
  "a time after the last": bodyWith({ signal_time: "9007199254740992" }),
  "a time after the last, rounded to it": bodyWith({ signal_time: "9007199254740993" }),
  "metadata that is an array": bodyWith({ metadata: '[{"a":1}]' }),
  "metadata that is null": bodyWith({ metadata: "null" }),
  "metadata that is a string of braces": bodyWith({ metadata: '"{}"' }),
  "a string `metadata` before it": bodyWith({ symbol: '"metadata"' }),
  "a name that ends as metadata does, in front of it": first('"\\"metadata":{"a":1}'),
  ...Object.fromEntries(
    required.map((name) => [
      `no ${name}`,
      `{${membersOf(whole)
        .filter((member) => !member.startsWith(`"${name}"`))
        .join(",")}}`,
    ]),
  ),
};

test.each(Object.entries(others))("the strict reader has to decide: %s", (_, text) => {
  expect(isOrdinary(text)).toBe(false);
});

test("what is not UTF-8 is refused before either way", () => {
  const bytes = Buffer.from(bodyWith({ symbol: '"@"' })).map((byte) =>
    byte === 0x40 ? 0xff : byte,
  );
  expect(outcome(() => parseSignal(bytes))).toContain("it is not valid UTF-8");
});

/** Fails for a field that is new to the definition until it is here, and in the signal that is read. */
test("the short way reads every field of the definition", () => {
  expect(Object.keys(whole)).toEqual(Object.keys(SignalBody.properties));
  const bytes = new TextEncoder().encode(bodyWith({}));
  const got = readOrdinary(bytes, decodeUtf8(bytes));
  const want = Object.entries(whole).map(([key, text]): [string, unknown] => [
    key,
    key === "metadata" ? text : JSON.parse(text),
  ]);
  expect(Object.entries<unknown>({ ...got })).toEqual(want);
});

const objectField = (name: string): Field => ({
  name,
  type: "object",
  isRequired: false,
  check: fieldRule(SignalBody.properties.metadata),
});

test("the short way is made only for a definition that it finds its way in", () => {
  const read = ordinaryReader([objectField("a")]);
  const got = ['{"a":{ }}', "{}", "[]", "null", "1"].map((text) => read(Buffer.from(text), text));
  expect(got).toEqual([{ a: "{ }" }, {}, null, null, null]);
  expect(() => ordinaryReader([objectField("a"), objectField("b")])).toThrow("only one");
});

/** One in `count` is the rare one. */
const oneIn = <T>(count: number, rare: fc.Arbitrary<T>, common: fc.Arbitrary<T>) =>
  fc.oneof({ weight: count - 1, arbitrary: common }, { weight: 1, arbitrary: rare });

const string = oneIn(
  12,
  fc.constantFrom(
    '"\\u0061"',
    '"\\"metadata"',
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    '""',
    '"metadata"',
  ),
  fc.constantFrom(
    '"BTC/USDT"',
    '"signal_time"',
    '"{"',
    '"}"',
    '"a b"',
    '"é😀"',
    '"[,:"',
    '"\\""',
    '"\\\\"',
    '"\\/"',
    '"\\\\\\\\"',
    '"\\"{"',
  ),
);
const number = fc.constantFrom("0", "-0", "1", "1.5", "1e3", "1.0", "1.00000000000000000001");
const time = oneIn(8, number, fc.constantFrom("0", "1", "1790000000000", "9007199254740991"));
const name = oneIn(
  4,
  string,
  fc.constantFrom(
    '"a"',
    '"b"',
    '"c"',
    '"d"',
    '"metadata"',
    '"signal_time"',
    '"__proto__"',
    '"0"',
    '"side"',
  ),
);
const space = fc.constantFrom("", "", "", " ", "\n", "\t\r\n ");
const { value, object } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "medium" },
    fc.constantFrom("null", "true", "1e999"),
    string,
    number,
    fc.array(tie("value"), { maxLength: 3 }).map((all) => `[${all.join(",")}]`),
    tie("object"),
  ),
  object: fc
    .tuple(
      fc.array(fc.tuple(name, tie("value")), { maxLength: 3 }),
      space,
      fc.nat({ max: 40 }),
      fc.boolean(),
    )
    .map(([all, gap, levels, isDeep]) => {
      const members = all.map(([key, text]) => `${gap}${key}${gap}:${text}${gap}`);
      if (isDeep && levels > 26) members.push(`"deep":${nested(levels - 5, "[", "]")}`);
      return `{${members.join(",")}}`;
    }),
}));

/** The members of a signal in any order; a few more, changed or twice. */
const members = fc
  .record({
    texts: fc.record(
      {
        symbol: string,
        client_signal_id: string,
        price: number,
        signal_time: time,
        metadata: object,
      },
      { requiredKeys: [] },
    ),
    left: fc.option(fc.constantFrom(...Object.keys(whole)), { freq: 2 }),
    extra: oneIn<string | null>(
      6,
      fc.oneof(
        fc.tuple(name, value).map(([key, text]) => `${key}:${text}`),
        fc.constantFrom(...membersOf(whole)),
      ),
      fc.constant(null),
    ),
    by: fc.array(fc.nat(), { minLength: 11, maxLength: 11 }),
    gap: space,
  })
  .map(({ texts, left, extra, by, gap }) => {
    const all = Object.entries({ ...whole, ...texts })
      .filter(([key]) => key !== left)
      .map(([key, text]) => `${gap}"${key}"${gap}:${gap}${text}${gap}`);
    const list = extra === null ? all : [...all, extra];
    return list
      .map((text, index) => ({ text, order: by[index] ?? 0 }))
      .toSorted((a, b) => a.order - b.order)
      .map(({ text }) => text);
  });

const damage = fc.array(
  fc.record({
    at: fc.nat(),
    remove: fc.nat({ max: 2 }),
    add: fc.oneof(
      fc.constantFrom(...'"\\{}[],:0 .e-u'.split(""), "", "\\u", "\\n", '""', "{}", "\ufeff", "é"),
      fc.string({ unit: "binary", maxLength: 1 }),
    ),
  }),
  { minLength: 1, maxLength: 2 },
);

const mutated = fc
  .tuple(members, fc.constantFrom("", "", "\ufeff", " "), fc.oneof(fc.constant([]), damage))
  .map(([list, before, all]) => {
    let text = `${before}{${list.join(",")}}`;
    for (const { at, remove, add } of all) {
      const start = at % (text.length + 1);
      text = text.slice(0, start) + add + text.slice(start + remove);
    }
    return new TextEncoder().encode(text);
  });

test("of good bodies and bodies that were good, both ways make the same", () => {
  let taken = 0;
  fc.assert(
    fc.property(mutated, (bytes) => {
      if (compare(bytes)) taken += 1;
    }),
    { numRuns: RUNS },
  );
  // Neither way is a rare one.
  expect(taken).toBeGreaterThan(RUNS / 10);
  expect(taken).toBeLessThan(RUNS - RUNS / 10);
});

test("of hostile bodies both ways make the same", () => {
  let taken = 0;
  fc.assert(
    fc.property(hostileBody, (plan) => {
      const bytes = bodyOf(plan, "mark");
      const strict = outcome(() => parseSignal(bytes));
      if (strict.includes("it is not valid UTF-8")) return;
      if (compare(bytes)) taken += 1;
    }),
    { numRuns: RUNS / 4 },
  );
  expect(taken).toBeGreaterThan(RUNS / 1_000);
});
