/** The fields' rules, each value as it is written in JSON, and what the answer says of it. */
import { expect, test } from "bun:test";
import { AppError } from "../src/domain/errors.ts";
import { parseSignal } from "../src/domain/signal.ts";
import { query, signal, startTestApp, type TestApp } from "./_setup.ts";

interface Case {
  /** The JSON text of the field's value. */
  readonly input: string;
  /** The reason, or null where the value is stored. */
  readonly want: string | null;
}

const text = (value: unknown): string => JSON.stringify(value);
const valid = (...inputs: string[]): Case[] => inputs.map((input) => ({ input, want: null }));
const invalid = (want: string, ...inputs: string[]): Case[] =>
  inputs.map((input) => ({ input, want }));

/** One of each JSON type. */
const values = {
  null: "null",
  true: "true",
  number: "1",
  string: '"1"',
  array: "[1]",
  object: "{}",
};
const allBut = (...types: (keyof typeof values)[]): string[] =>
  Object.entries(values)
    .filter(([type]) => !(types as string[]).includes(type))
    .map(([, value]) => value);

const sourceReason = "must be one of: venue_1, venue_2, venue_3";
const typeReason = "must be one of: prediction_market, crypto, stock";
const sideReason = "must be one of: open, close";
const directionReason = "must be one of: long, short, buy, sell";
const controlReason = "must not contain control characters";

const controls = [
  ...Array.from({ length: 0x20 }, (_, code) => code),
  ...Array.from({ length: 0x21 }, (_, index) => 0x7f + index),
];

/** Each control character at the start, in the middle or at the end; sent as an escape. */
const withControls = controls.map((code, index) => {
  const escaped = `\\u${code.toString(16).padStart(4, "0")}`;
  return ['"', ...["a", "b"].toSpliced(index % 3, 0, escaped), '"'].join("");
});

const notControls = ["\u007e", "\u00a0", "\u00ad", "\u200b", "\u2028", "\ufeff", "\uffff"];

const tables: Record<string, Case[]> = {
  source: [
    ...valid('"venue_1"', '"venue_2"', '"venue_3"', '"\\u0076enue_1"'),
    ...invalid(sourceReason, ...allBut(), '"venue_4"', '"Venue_1"', '"venue_1 "', '""'),
  ],
  type: [
    ...valid('"prediction_market"', '"crypto"', '"stock"'),
    ...invalid(typeReason, ...allBut(), '"prediction market"', '"CRYPTO"', '["crypto"]'),
  ],
  side: [
    ...valid('"open"', '"close"'),
    ...invalid(sideReason, ...allBut(), '"buy"', '"opened"', '"constructor"', '"open\\u0000"'),
  ],
  direction: [
    ...valid('"long"', '"short"', '"buy"', '"sell"'),
    ...invalid(directionReason, ...allBut(), '"open"', '"Long"', '""', '"toString"'),
  ],
  symbol: [
    ...valid(
      '"BTC/USDT"',
      '"AAPL"',
      '"Will it rain?"',
      '" "',
      '"a"',
      '"\\ud83d\\ude00"',
      '"\\"\\\\"',
    ),
    ...valid(text("a".repeat(512)), text("😀".repeat(512)), text("é".repeat(512))),
    ...valid(text(`${"😀".repeat(256)}${"a".repeat(256)}`)),
    ...valid(...notControls.map(text)),
    ...invalid("must be a string", ...allBut("string")),
    ...invalid("must have 1 to 512 characters", '""', text("a".repeat(513))),
    ...invalid("must have 1 to 512 characters", text("😀".repeat(513)), text("a".repeat(1_025))),
    ...invalid("must have 1 to 512 characters", text(`${"😀".repeat(256)}${"a".repeat(257)}`)),
    ...invalid(controlReason, ...withControls, '"\\t"', '"\\n"', text(`${"a".repeat(511)}\u0085`)),
    ...invalid(controlReason, '"\u007f"', '"\u0080"', '"\u009f"', '"a\\nb"', '"a\\n"'),
  ],
  client_signal_id: [
    ...valid('"a"', '" "', text("b".repeat(255)), text("😀".repeat(255)), '"\\u0061 a"', '"null"'),
    ...valid(...notControls.map((character) => text(`x${character}`))),
    ...invalid("must be a string", ...allBut("string")),
    ...invalid("must have 1 to 255 characters", '""', text("a".repeat(256))),
    ...invalid("must have 1 to 255 characters", text("😀".repeat(256)), text("a".repeat(511))),
    ...invalid(controlReason, ...withControls, '"\u007f"', '"a\\n"'),
  ],
  ...Object.fromEntries(
    ["price", "quantity"].map((name) => [
      name,
      [
        ...valid("0", "-0", "-0.0", "1", "-1", "1.5", "1e3", "1E+3", "1e-3", "64250.5", "0.1"),
        ...valid("9007199254740993", "18446744073709551616", "123456789012345678901234567890"),
        ...valid("1.7976931348623157e308", "-1.7976931348623157e308", "5e-324", "1e-999"),
        ...valid("0.1000000000000000055511151231257827", `1${"0".repeat(308)}`, "0e999"),
        ...invalid("must be a number", ...allBut("number"), '"NaN"', '""'),
        ...invalid("must be a finite number", "1e999", "-1e999", "1e309", `1${"0".repeat(309)}`),
        ...invalid("must be a finite number", "1.7976931348623159e308", "-1.8e308"),
      ],
    ]),
  ),
  signal_time: [
    ...valid("0", "-0", "0.0", "0e5", "-0e0", "1", "1790000000000", "9007199254740991"),
    ...valid("1.0", "1.7e12", "1.70E+12", "10e-1", "1500.0e-2", "9007199254740991.000"),
    ...valid("0.9007199254740991e16", "0e-999999999999999999999"),
    // As parsed: the nearest double is whole.
    ...valid("1.00000000000000000001", "9007199254740991.1", "1e-999"),
    ...invalid("must be an integer", ...allBut("number"), '"1790000000000"'),
    ...invalid("must be an integer", "1.5", "-1.5", "0.1", "1e-1", "15e-1"),
    ...invalid("must be an integer", "5e-324", "1e999", "-1e999"),
    ...invalid("must be from 0 to 9007199254740991", "-1", "9007199254740992", "9007199254740993"),
    ...invalid("must be from 0 to 9007199254740991", "1e16", "1e308", "-1.0"),
  ],
  metadata: [
    ...valid("{}", '{"a":1}', '{ "a" : [ 1e999 , null , {"":""} ] }', '{"__proto__":{"x":1}}'),
    ...valid('{"a":123456789012345678901234567890,"b":1.10}', '{"source":1,"A":"\\u0000"}'),
    ...invalid("must be an object", ...allBut("object"), "[]", '"{}"', "[{}]"),
  ],
};

test.each(Object.keys(tables))(
  "%s is stored as sent, or refused with its reason",
  async (field) => {
    const app = await startTestApp();
    const cases = tables[field] ?? [];
    const got: Record<string, unknown> = {};
    for (const { input } of cases) got[shorten(input)] = await reasonFor(app, field, input);
    expect(Object.keys(got)).toHaveLength(cases.length);
    expect(got).toEqual(Object.fromEntries(cases.map(({ input, want }) => [shorten(input), want])));
  },
);

/** Null where the signal was stored, and with the very value. */
async function reasonFor(app: TestApp, field: string, input: string): Promise<unknown> {
  const others = Object.entries(signal).filter(([name]) => name !== field);
  const members = [...others.map(([name, value]) => `"${name}":"${value}"`), `"${field}":${input}`];
  const { status, body } = await app.post(`{${members.join(",")}}`);
  if (status === 422) {
    expect(body).toEqual({
      error: "validation_failed",
      fields: { [field]: expect.any(String) },
    });
    return (body["fields"] as Record<string, string>)[field];
  }
  if (status !== 201) return `status ${status}`;
  const [row] = query<{ value: unknown }>(
    app.dataDir,
    `SELECT ${field} AS value FROM signals WHERE id = ?`,
    body["id"] as string,
  );
  const want: unknown = field === "metadata" ? input : JSON.parse(input);
  // The sign of zero is the one thing of a double that SQLite does not keep.
  return row?.value === want ? null : `stored as ${String(row?.value)}`;
}

const required = ["source", "type", "symbol", "side"] as const;

test("a missing required field is required, alone and with the others", async () => {
  const { post } = await startTestApp();
  for (const name of required) {
    const { status, body } = await post({ ...signal, [name]: undefined });
    expect([status, body["fields"]]).toEqual([422, { [name]: "required" }]);
  }
  const { status, text: answer } = await post("{}");
  expect([status, JSON.parse(answer)]).toEqual([
    422,
    {
      error: "validation_failed",
      fields: { source: "required", type: "required", symbol: "required", side: "required" },
    },
  ]);
});

test("null is a wrong type for every field, required or not", async () => {
  const { post } = await startTestApp();
  const names = Object.keys(tables);
  const { status, body } = await post(Object.fromEntries(names.map((name) => [name, null])));
  expect([status, body["fields"]]).toEqual([
    422,
    {
      source: sourceReason,
      type: typeReason,
      symbol: "must be a string",
      side: sideReason,
      direction: directionReason,
      price: "must be a number",
      quantity: "must be a number",
      signal_time: "must be an integer",
      client_signal_id: "must be a string",
      metadata: "must be an object",
    },
  ]);
});

const unknownNames = [
  "client_signal_Id",
  "clientSignalId",
  "client_signal_id ",
  "Source",
  "id",
  "desk",
  "desk_id",
  "key_id",
  "received_at",
  "seq",
  "",
  " ",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "valueOf",
  "prototype",
  "fields",
  "error",
  "😀",
  "\u0000",
  "0",
  "a\nb",
];

test("a member without a name in the interface is an unknown field, whatever its name and value", async () => {
  const { post, dataDir } = await startTestApp();
  const rest = JSON.stringify(signal).slice(1);
  for (const name of unknownNames) {
    for (const value of ["1", "null", "{}"]) {
      const answer = await post(`{${text(name)}:${value},${rest}`);
      const hint = /^(unknown field)(; did you mean [a-z_]+\?)?"\}\}$/;
      const start = `{"error":"validation_failed","fields":{${text(name)}:"`;
      expect(answer.status).toBe(422);
      expect(answer.text).toStartWith(start);
      expect(answer.text.slice(start.length)).toMatch(hint);
    }
  }
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
});

const meant: [name: string, field: string | null][] = [
  ["clientSignalId", "client_signal_id"],
  ["CLIENT-SIGNAL-ID", "client_signal_id"],
  ["client_signal_i", "client_signal_id"],
  ["signalTime", "signal_time"],
  ["Side", "side"],
  ["symbl", "symbol"],
  ["metaData", "metadata"],
  ["note", null],
  ["leverage", null],
  ["", null],
  ["__proto__", null],
  ["side".repeat(10_000), null],
];

test("an unknown field's reason names the field that was probably meant", async () => {
  const { post } = await startTestApp();
  const unknown = meant.map(([name]) => `${text(name)}:1`).join();
  const { text: answer } = await post(`{${unknown},${JSON.stringify(signal).slice(1)}`);
  for (const [name, field] of meant) {
    const hint = field === null ? "" : `; did you mean ${field}?`;
    expect(answer).toContain(`${text(name)}:"unknown field${hint}"`);
  }
});

test("a required field under a name that every object has is still missing", async () => {
  const { post } = await startTestApp();
  const { body, text: answer } = await post('{"__proto__":{"source":"venue_1"},"side":"open"}');
  expect(answer).toContain('"__proto__":"unknown field"');
  expect(body["fields"]).toMatchObject({ source: "required", type: "required" });
});

test("every bad field is in one answer, and no good one", async () => {
  const { post, dataDir } = await startTestApp();
  const bad = {
    source: "venue_9",
    symbol: "",
    side: "open",
    direction: 7,
    price: "1",
    quantity: 2,
    signal_time: 1.5,
    client_signal_id: "\u0007",
    metadata: [],
    note: "x",
    Price: 1,
  };
  const { status, body } = await post(bad);
  expect([status, body]).toEqual([
    422,
    {
      error: "validation_failed",
      fields: {
        source: sourceReason,
        type: "required",
        symbol: "must have 1 to 512 characters",
        direction: directionReason,
        price: "must be a number",
        signal_time: "must be an integer",
        client_signal_id: controlReason,
        metadata: "must be an object",
        note: "unknown field",
        Price: "unknown field; did you mean price?",
      },
    },
  ]);
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
});

test("thousands of unknown fields are all named", async () => {
  const { post } = await startTestApp();
  const names = Array.from({ length: 5_000 }, (_, index) => `f${index}`);
  const { status, body } = await post(Object.fromEntries(names.map((name) => [name, 1])));
  const fields = body["fields"] as Record<string, string>;
  expect([status, Object.keys(fields).length]).toEqual([422, names.length + required.length]);
});

const longNumbers: { name: string; input: string }[] = [
  { name: "zeros between two ones", input: `1${"0".repeat(65_000)}1` },
  { name: "zeros in the fraction", input: `1.${"0".repeat(65_000)}1` },
  { name: "zeros in the exponent", input: `1e${"0".repeat(65_000)}1` },
  { name: "zeros at the end", input: `1.${"0".repeat(65_000)}` },
  { name: "ones and zeros", input: "10".repeat(32_500) },
  { name: "many digits", input: "1".repeat(65_000) },
];

test.each(longNumbers)("a long number does not hold up the server: $name", ({ input }) => {
  const bytes = new TextEncoder().encode(`{"signal_time":${input}}`);
  const startedAt = performance.now();
  expect(() => parseSignal(bytes)).toThrow(AppError);
  // Not a measure of speed: it takes under 1 ms, and took 1,700 ms when it was quadratic.
  expect(performance.now() - startedAt).toBeLessThan(500);
});

/** Long inputs, and control characters that were not escaped, make no good names. */
function shorten(input: string): string {
  const shown = JSON.stringify(input);
  return shown.length <= 60
    ? shown
    : `${shown.slice(0, 40)}…${shown.slice(-10)} (${input.length} units)`;
}
