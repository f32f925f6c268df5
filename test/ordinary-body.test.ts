/**
 * The short way through a body (`ordinary-body.ts`) against the strict reader: it takes the bodies that
 * clients send, and gives nothing and no reason that the strict reader would not give.
 *
 * More generated bodies than in the gate: `BODY_RUNS=1000000 bun test test/ordinary-body.test.ts`.
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

const RUNS = Number(process.env["BODY_RUNS"] ?? 5_000);

// On a machine that may be busy.
setDefaultTimeout(60_000 + RUNS);

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
function outcome(read: () => Signal | null): string {
  try {
    return JSON.stringify(read(), (_, value: unknown) => (Object.is(value, -0) ? "-0" : value));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return JSON.stringify([error.code, error.message, error.detail]);
  }
}

/** What the short way made of a body; `nothing` where the strict reader had to decide. */
type Way = "a signal" | "reasons" | "nothing";

/** Fails where the short way, or the whole, differs from the strict reader. */
function compare(bytes: Uint8Array): Way {
  const strict = outcome(() => readStrictly(decodeUtf8(bytes)));
  expect(outcome(() => parseSignal(bytes))).toBe(strict);
  const ordinary = outcome(() => readOrdinary(bytes, decodeUtf8(bytes)));
  if (ordinary === "null") return "nothing";
  expect(ordinary).toBe(strict);
  return strict.startsWith("{") ? "a signal" : "reasons";
}

const wayOf = (text: string): Way => compare(new TextEncoder().encode(text));

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
  expect(wayOf(text)).toBe("a signal");
});

test("the short way is the first that is tried", () => {
  using parse = spyOn(JSON, "parse");
  parseSignal(new TextEncoder().encode(bodyWith({})));
  expect(parse).toHaveBeenCalledTimes(1);
});

/** Plainly JSON, and plainly no signal. */
const invalid: Record<string, string> = {
  "an unknown field": more('"a":1'),
  "an unknown field without a name": more('"":1'),
  "a price that is infinite": bodyWith({ price: "1e999" }),
  "a price that is a string": bodyWith({ price: '"1"' }),
  "a price that is null": bodyWith({ price: "null" }),
  "an enum of another case": bodyWith({ side: '"OPEN"' }),
  "a symbol that is empty": bodyWith({ symbol: '""' }),
  "a symbol that is too long": bodyWith({ symbol: `"${"a".repeat(513)}"` }),
  "a symbol with a control character": bodyWith({ symbol: '"a\\nb"' }),
  "a symbol with DEL": bodyWith({ symbol: '"\u007f"' }),
  "a time after the last": bodyWith({ signal_time: "9007199254740992" }),
  "metadata that is null": bodyWith({ metadata: "null" }),
  "metadata that is a string of braces": bodyWith({ metadata: '"{}"' }),
  ...Object.fromEntries(
    required.map((name) => [
      `no ${name}`,
      `{${membersOf(whole)
        .filter((member) => !member.startsWith(`"${name}"`))
        .join(",")}}`,
    ]),
  ),
  "no field at all": "{}",
  "fields that are null, as Python has them": bodyWith({
    direction: "null",
    quantity: "null",
    signal_time: "null",
    client_signal_id: "null",
  }),
  "every field of the wrong kind": bodyWith({
    source: "1",
    type: "null",
    symbol: "true",
    side: '""',
    direction: "false",
    price: '"1"',
    quantity: '"{"',
    signal_time: '"1790000000000"',
    client_signal_id: "-0",
    metadata: '"metadata"',
  }),
  "every field wrong, in reverse": `{${membersOf(whole)
    .map((member) => member.replace(/:.*/, ":false"))
    .toReversed()
    .join(",")}}`,
  "unknown fields among others that are wrong": `{"z":"1","symbol":"","a":null,"side":"","m":false,"1":1,"0":0}`,
  "an unknown field with the name of a field as its value": more(
    '"a":"signal_time","b":"metadata"',
  ),
  "an unknown __proto__ that is a number": more('"__proto__":1'),
  "an unknown constructor": more('"constructor":"x"'),
  "a field's name with a space": first('"side ":"open"'),
  "a time after the last, rounded to it": bodyWith({ signal_time: "9007199254740993" }),
  "a time in seconds": bodyWith({ signal_time: "1790000000.125" }),
  "a time that is a small fraction": bodyWith({ signal_time: "1e-7" }),
  "a time in many digits": bodyWith({ signal_time: "9".repeat(400) }),
  "wrong fields around metadata with the names of fields": bodyWith({
    side: "1",
    metadata: '{"signal_time":1.5,"metadata":{"metadata":1},"source":"signal_time"}',
  }),
  "metadata first, with the names of fields, and an unknown field": bodyFrom("metadata", {
    metadata: '{"signal_time":1.5,"metadata":{}}',
    a: "1",
  }),
};

test.each(Object.entries(invalid))("the short way has the reasons: %s", (_, text) => {
  expect(wayOf(text)).toBe("reasons");
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
  "a price that is an object": bodyWith({ price: '{"metadata":{}}' }),
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
  "metadata that is an array": bodyWith({ metadata: '[{"a":1}]' }),
  "a string `metadata` before it": bodyWith({ symbol: '"metadata"' }),
  "a name that ends as metadata does, in front of it": first('"\\"metadata":{"a":1}'),
  "an unknown field that is an array": more('"a":[]'),
  "an unknown field that is an object, with a time in it": first('"a":{"signal_time":1}'),
  "an unknown field that is an object, with metadata in it": first('"a":{"metadata":{"a":1}}'),
  "an unknown field twice": more('"a":1', '"a":1'),
  "an unknown field, and a name twice in metadata": bodyFrom("metadata", {
    metadata: '{"a":1,"a":1}',
    b: "1",
  }),
  "an unknown name that ends as a time's does, in front of it": `{"\\"signal_time":1,${membersOf({ ...whole, signal_time: "1.00000000000000000001" }).join(",")}}`,
  "a price that is an array, with a time in it": bodyFrom("price", {
    price: '[{"signal_time":1}]',
    signal_time: "1.00000000000000000001",
  }),
  "metadata that is an array, with a time in it": bodyFrom("metadata", {
    metadata: '[{"signal_time":1}]',
    signal_time: "1.00000000000000000001",
  }),
  "a wrong side, and a field twice": bodyWith({ side: "1" }).replace("{", '{"symbol":1,'),
  "a price that is nesting of 33": bodyWith({ price: `${"[".repeat(32)}${"]".repeat(32)}` }),
  "an unknown field that is nesting of 33": more(`"a":${"[".repeat(32)}${"]".repeat(32)}`),
  "a wrong side, and nesting of 33": bodyWith({ side: "1", metadata: nested(31) }),
  "a time too large for a double": bodyWith({ signal_time: "1e999" }),
  "a time with a fraction too large for a double": bodyWith({
    signal_time: `${"9".repeat(400)}.5`,
  }),
  "a time with a fraction that underflows": bodyWith({ signal_time: "1e-400" }),
};

test.each(Object.entries(others))("the strict reader has to decide: %s", (_, text) => {
  expect(wayOf(text)).toBe("nothing");
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

function inOrder(texts: readonly string[], by: readonly number[]): string[] {
  return texts
    .map((text, index) => ({ text, order: by[index] ?? 0 }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ text }) => text);
}

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
    return inOrder(list, by);
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

/** Wrong for most fields: of any kind, and at the edges of what is read. */
const wrongValues = [
  "null",
  "true",
  "{}",
  "[]",
  "[null]",
  '""',
  '"x"',
  '"1"',
  '"OPEN"',
  '"a\\nb"',
  '"\\\\"',
  '"\u007f"',
  `"${"a".repeat(513)}"`,
  '"signal_time"',
  '"metadata"',
  '"{}"',
  "-1",
  "1.5",
  "1e-7",
  "1e999",
  "9007199254740992",
  "9".repeat(400),
];
const wrong = oneIn(6, value, fc.constantFrom(...wrongValues));
const unknownName = oneIn(
  8,
  name,
  fc.constantFrom('"a"', '"b"', '"1"', '"0"', '""', '"__proto__"', '"constructor"', '"side "'),
);

/** A signal in any order that is wrong in none, one or several ways. */
const wrongMembers = fc
  .record({
    texts: fc.record(
      Object.fromEntries(
        Object.entries(whole).map(([key]) => [key, oneIn(4, wrong, fc.constant(null))]),
      ),
    ),
    left: fc.array(fc.constantFrom(...Object.keys(whole)), { maxLength: 3 }),
    object: oneIn(3, object, fc.constant(null)),
    unknown: fc.array(
      fc.tuple(unknownName, wrong).map(([key, text]) => `${key}:${text}`),
      { maxLength: 2 },
    ),
    again: oneIn<string[]>(
      12,
      fc.constantFrom(...membersOf(whole)).map((one) => [one]),
      fc.constant([]),
    ),
    by: fc.array(fc.nat(), { minLength: 13, maxLength: 13 }),
    gap: space,
  })
  .map(({ texts, left, object: metadata, unknown, again, by, gap }) => {
    const all = Object.entries({ ...whole, ...(metadata === null ? {} : { metadata }) })
      .filter(([key]) => !left.includes(key))
      .map(([key, text]) => `${gap}"${key}"${gap}:${gap}${texts[key] ?? text}${gap}`);
    return inOrder([...all, ...unknown, ...again], by);
  });

const bytesOf = (membersOfBody: fc.Arbitrary<string[]>) =>
  fc
    .tuple(membersOfBody, fc.constantFrom("", "", "\ufeff", " "), fc.oneof(fc.constant([]), damage))
    .map(([list, before, all]) => {
      let text = `${before}{${list.join(",")}}`;
      for (const { at, remove, add } of all) {
        const start = at % (text.length + 1);
        text = text.slice(0, start) + add + text.slice(start + remove);
      }
      return new TextEncoder().encode(text);
    });

/** How often each way was taken in so many bodies. */
function waysOf(bodies: fc.Arbitrary<Uint8Array>, runs: number): Record<Way, number> {
  const ways: Record<Way, number> = { "a signal": 0, reasons: 0, nothing: 0 };
  fc.assert(
    fc.property(bodies, (bytes) => {
      ways[compare(bytes)] += 1;
    }),
    { numRuns: runs },
  );
  return ways;
}

test("of good bodies and bodies that were good, both ways make the same", () => {
  const ways = waysOf(bytesOf(members), RUNS);
  // None of them is a rare one.
  expect(Math.min(ways["a signal"], ways.reasons, ways.nothing)).toBeGreaterThan(RUNS / 20);
});

test("of bodies that are wrong in several ways, both ways have the same reasons", () => {
  const ways = waysOf(bytesOf(wrongMembers), RUNS);
  expect(ways.reasons).toBeGreaterThan(RUNS / 10);
  expect(ways.nothing).toBeGreaterThan(RUNS / 10);
});

test("of hostile bodies both ways make the same", () => {
  const utf8 = hostileBody
    .map((plan) => bodyOf(plan, "mark"))
    .filter((bytes) => !outcome(() => parseSignal(bytes)).includes("it is not valid UTF-8"));
  const ways = waysOf(utf8, RUNS / 4);
  expect(Math.min(ways["a signal"], ways.reasons)).toBeGreaterThan(RUNS / 1_000);
});
