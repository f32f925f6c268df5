/** The rules of the fields: which values are stored, and the reason in the 422 for the others. */
import { expect, spyOn, test } from "bun:test";
import { AppError } from "../../src/domain/errors.ts";
import { parseSignal, type Signal } from "../../src/domain/signal/signal.ts";
import { appSharedByFile, onCleanup, query, signal } from "../kit/setup.ts";

const emptyApp = appSharedByFile();

interface Case {
  /** The JSON text of the value. */
  readonly input: string;
  /** The reason, or null for a value that is stored. */
  readonly want: string | null;
}

const text = (value: unknown): string => JSON.stringify(value);
const valid = (...inputs: string[]): Case[] => inputs.map((input) => ({ input, want: null }));
const invalid = (want: string, ...inputs: string[]): Case[] =>
  inputs.map((input) => ({ input, want }));

const values = {
  null: "null",
  true: "true",
  number: "1",
  string: '"1"',
  array: "[1]",
  object: "{}",
};
/** One value of each JSON type but this one. */
const notA = (type: keyof typeof values | null): string[] =>
  Object.entries(values).flatMap(([name, value]) => (name === type ? [] : [value]));

const oneOf = (allowed: string[], ...others: string[]): Case[] => [
  ...valid(...allowed.map(text)),
  ...invalid(`must be one of: ${allowed.join(", ")}`, ...notA(null), ...others.map(text)),
];

/** C0, DEL and C1: each is refused at the start, in the middle and at the end, escaped or not. */
const controls = [0x00, 0x01, 0x09, 0x0a, 0x1f, 0x7f, 0x80, 0x85, 0x9f].flatMap((code, index) => {
  const escaped = `\\u${code.toString(16).padStart(4, "0")}`;
  const raw = code < 0x20 ? [] : [text(`a${String.fromCharCode(code)}b`)];
  return [`"${["a", "b"].toSpliced(index % 3, 0, escaped).join("")}"`, ...raw];
});

const freeText = (charactersMax: number): Case[] => [
  ...valid('" "', '"a"', '"null"', '"\\"\\\\"', '"\\u0061 a"'),
  ...valid(...["a", "é", "😀"].map((one) => text(one.repeat(charactersMax)))),
  ...valid(...["~", "\u00a0", "\u00ad", "\u200b", "\u2028", "\ufeff", "\uffff"].map(text)),
  ...invalid("must be a string", ...notA("string")),
  ...invalid(
    `must have 1 to ${charactersMax} characters`,
    '""',
    ...["a", "😀"].map((one) => text(one.repeat(charactersMax + 1))),
    text("a".repeat(charactersMax * 2 + 1)),
  ),
  ...invalid("must not contain control characters", ...controls),
];

const double: Case[] = [
  ...valid("0", "-0.0", "-1", "1.5", "1E+3", "1e-3", "9007199254740993", "18446744073709551616"),
  ...valid("1.7976931348623157e308", "5e-324", "1e-999", `1${"0".repeat(308)}`, "0e999"),
  ...invalid("must be a number", ...notA("number"), '"NaN"'),
  ...invalid("must be a finite number", "1e999", "-1e999", "1.8e308", `1${"0".repeat(309)}`),
];

/** Typed by the fields of a signal, so that none is forgotten. */
const tables: Record<keyof Signal, Case[]> = {
  source: oneOf(["venue_1", "venue_2", "venue_3"], "venue_4", "Venue_1", "venue_1 ", ""),
  type: oneOf(["prediction_market", "crypto", "stock"], "prediction market", "CRYPTO"),
  side: oneOf(["open", "close"], "buy", "constructor", "open\u0000"),
  direction: oneOf(["long", "short", "buy", "sell"], "open", "Long", "toString"),
  symbol: freeText(512),
  client_signal_id: freeText(255),
  price: double,
  quantity: double,
  signal_time: [
    ...valid(
      "0",
      "-0",
      "0e5",
      "1763822000",
      "1790000000000",
      "9007199254740991",
      "1.0",
      "1.7e12",
      "10e-1",
    ),
    // The nearest double is whole.
    ...valid("1.00000000000000000001", "9007199254740991.1", "1e-999"),
    ...invalid("must be an integer", ...notA("number"), '"1790000000000"'),
    ...invalid(
      "must be an integer; looks like seconds, send milliseconds",
      "1763822000.12",
      "100000000.5",
      "99999999999.5",
    ),
    ...invalid("must be an integer", "99999999.5", "100000000000.5", '"1763822000.12"'),
    ...invalid("must be an integer", "1.5", "0.1", "15e-1", "5e-324", "1e999", "-1e999"),
    ...invalid("must be from 0 to 9007199254740991", "-1", "-1.0", "9007199254740992", "1e308"),
  ],
  metadata: [
    ...valid("{}", '{ "a" : [ 1e999 , null , {"":""} ] }', '{"__proto__":{"x":1}}'),
    ...valid('{"a":123456789012345678901234567890,"b":1.10}', '{"source":1,"A":"\\u0000"}'),
    ...invalid("must be an object", ...notA("object"), "[]", "[{}]"),
  ],
};

test.each(Object.keys(tables) as (keyof Signal)[])(
  "%s is read as sent, or refused with its reason",
  (field) => {
    for (const { input, want } of tables[field]) {
      expect([shorten(input), reasonFor(field, input)]).toEqual([shorten(input), want]);
    }
  },
);

/** Returns null if exactly this value was read. */
function reasonFor(field: keyof Signal, input: string): unknown {
  const others = Object.entries(signal).filter(([name]) => name !== field);
  const members = [...others.map(([name, value]) => `"${name}":"${value}"`), `"${field}":${input}`];
  const want: unknown = field === "metadata" ? input : JSON.parse(input);
  try {
    const { [field]: read } = parseSignal(new TextEncoder().encode(`{${members.join(",")}}`));
    return read === want ? null : `read as ${read}`;
  } catch (error) {
    const { [field]: reason, ...rest } = (error as AppError).detail.fields ?? {};
    expect(rest).toEqual({});
    return reason;
  }
}

test("a missing required field is required, alone and with the others", async () => {
  const { post } = emptyApp();
  const required = { source: "required", type: "required", symbol: "required", side: "required" };
  for (const name of Object.keys(required)) {
    const { status, body } = await post({ ...signal, [name]: undefined });
    expect([status, body["fields"]]).toEqual([422, { [name]: "required" }]);
  }
  expect((await post("{}")).body).toEqual({ error: "validation_failed", fields: required });
});

/** Unknown name → the field that its reason suggests. */
const unknownNames: Record<string, string | null> = {
  clientSignalId: "client_signal_id",
  "CLIENT-SIGNAL-ID": "client_signal_id",
  "client_signal_id ": "client_signal_id",
  client_signal_i: "client_signal_id",
  signalTime: "signal_time",
  Side: "side",
  symbl: "symbol",
  metaData: "metadata",
  note: null,
  leverage: null,
  received_at: null,
  "": null,
  constructor: null,
  hasOwnProperty: null,
  "😀": null,
  "\u0000": null,
  "0": null,
  "a\nb": null,
  ["__proto__"]: null,
  ["side".repeat(10_000)]: null,
};

test("an unknown field is refused, and its reason suggests the field that was meant", async () => {
  const { post, dataDir } = emptyApp();
  const unknown = Object.keys(unknownNames).map((name) => `${text(name)}:1`);
  const answer = await post(`{${unknown.join()},${JSON.stringify(signal).slice(1)}`);
  expect(answer.status).toBe(422);
  for (const [name, field] of Object.entries(unknownNames)) {
    const hint = field === null ? "" : `; did you mean ${field}?`;
    expect(answer.text).toContain(`${text(name)}:"unknown field${hint}"`);
  }
  const alone = await post(`{"__proto__":{"source":"venue_1"},"side":"open"}`);
  expect(alone.text).toContain('"__proto__":"unknown field"');
  expect(alone.body["fields"]).toMatchObject({ source: "required", type: "required" });
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
});

/** A signal with these members beside a wrong `side`; `fields` of the answer. */
async function reasonsFor(names: readonly string[]): Promise<unknown> {
  const { post } = emptyApp();
  const unknown = Object.fromEntries(names.map((name) => [name, 1]));
  const { status, body } = await post({ ...signal, side: "up", ...unknown });
  expect(status).toBe(422);
  return body["fields"];
}

test("20 unknown fields are named; the reason of the last says how many more there are", async () => {
  const names = Array.from({ length: 5_000 }, (_, index) => `f${index}`);
  const first = Object.fromEntries(names.slice(0, 20).map((name) => [name, "unknown field"]));
  const others = { side: "must be one of: open, close" };
  expect(await reasonsFor(names.slice(0, 20))).toEqual({ ...first, ...others });
  expect(await reasonsFor(names.slice(0, 21))).toEqual({
    ...first,
    ...others,
    f19: "unknown field; 1 more unknown field is not listed",
  });
  expect(await reasonsFor(names)).toEqual({
    ...first,
    ...others,
    f19: "unknown field; 4980 more unknown fields are not listed",
  });
});

test("the last of 20 unknown fields suggests a field, too", async () => {
  const names = [...Array.from({ length: 19 }, (_, index) => `f${index}`), "symbl", "prise"];
  expect(await reasonsFor(names)).toMatchObject({
    symbl: "unknown field; did you mean symbol? 1 more unknown field is not listed",
  });
});

test("the escaped names of unknown objects are decoded once, all together", () => {
  const names = Array.from({ length: 5_000 }, (_, index) => `"\\n${index}":{}`);
  const bytes = new TextEncoder().encode(`{${names.join()}}`);
  const parse = spyOn(JSON, "parse");
  onCleanup(() => parse.mockRestore());
  expect(() => parseSignal(bytes)).toThrow(AppError);
  expect(parse).toHaveBeenCalledTimes(1);
});

test.each([
  ["zeros between two ones", `1${"0".repeat(65_000)}1`],
  ["zeros in the fraction", `1.${"0".repeat(65_000)}1`],
  ["zeros in the exponent", `1e${"0".repeat(65_000)}1`],
])("a long number does not hold up the server: %s", (_name, input) => {
  const bytes = new TextEncoder().encode(`{"signal_time":${input}}`);
  const startedAt = performance.now();
  expect(() => parseSignal(bytes)).toThrow(AppError);
  // It takes under 1 ms, and would take 1,700 ms in quadratic time.
  expect(performance.now() - startedAt).toBeLessThan(500);
});

function shorten(input: string): string {
  return input.length <= 60 ? input : `${input.slice(0, 40)}… (${input.length} units)`;
}
