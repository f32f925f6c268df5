/** The JSON profile (RFC 8259 and RFC 7493): what a 400 is, and that nothing else is one. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  decodeUtf8,
  JSON_DEPTH_MAX,
  JsonError,
  type Member,
  readObject,
} from "../src/domain/ijson.ts";
import { query, signal, startTestApp } from "./_setup.ts";

const rest = JSON.stringify(signal).slice(1);

/** A valid signal with this text as the value of `metadata`'s only member. */
const inMetadata = (text: string): string => `{"metadata":{"x":${text}},${rest}`;
const nested = (depth: number, open = "[", close = "]"): string =>
  open.repeat(depth) + close.repeat(depth);

interface Case {
  readonly name: string;
  readonly input: string | Uint8Array;
}

const cases = (wrap: (text: string) => string, inputs: string[]): Case[] =>
  inputs.map(wrap).map((text) => ({ name: text, input: text }));

/** Text with bytes of choice in the place of the mark. */
function bytesIn(text: string, bytes: readonly number[]): Uint8Array {
  const [before = "", after = ""] = text.split("@");
  return new Uint8Array([...Buffer.from(before), ...bytes, ...Buffer.from(after)]);
}

const invalidUtf8: Record<string, number[]> = {
  "a lone continuation byte": [0x80],
  "a lone byte of Latin-1": [0xe9],
  FE: [0xfe],
  FF: [0xff],
  "F5, above Unicode": [0xf5, 0x80, 0x80, 0x80],
  "U+110000": [0xf4, 0x90, 0x80, 0x80],
  "an overlong slash, two bytes": [0xc0, 0xaf],
  "an overlong NUL, two bytes": [0xc0, 0x80],
  "an overlong slash, three bytes": [0xe0, 0x80, 0xaf],
  "an overlong slash, four bytes": [0xf0, 0x80, 0x80, 0xaf],
  "an overlong U+FFFF": [0xf0, 0x8f, 0xbf, 0xbf],
  "a high surrogate": [0xed, 0xa0, 0xbd],
  "a low surrogate": [0xed, 0xb8, 0x80],
  "a surrogate pair (CESU-8)": [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80],
  "two bytes cut short": [0xc3],
  "three bytes cut short": [0xe2, 0x82],
  "four bytes cut short": [0xf0, 0x9f, 0x98],
  "five bytes": [0xf8, 0x88, 0x80, 0x80, 0x80],
};

const refused: Case[] = [
  ...Object.entries(invalidUtf8).flatMap(([name, bytes]) => [
    { name: `${name}, in a string`, input: bytesIn(inMetadata('"a@b"'), bytes) },
    { name: `${name}, in a name`, input: bytesIn(inMetadata('{"a@b":1}'), bytes) },
    { name: `${name}, at the end`, input: bytesIn(`{${rest}@`, bytes) },
  ]),
  { name: "UTF-16, big endian", input: utf16(`\ufeff{${rest}`, false) },
  { name: "UTF-16, little endian", input: utf16(`\ufeff{${rest}`, true) },
  { name: "UTF-16 without a mark", input: utf16(`{${rest}`, true) },
  { name: "two byte order marks", input: `\ufeff\ufeff{${rest}` },
  { name: "a byte order mark within", input: `{\ufeff${rest}` },
  { name: "a byte order mark at the end", input: `{${rest}\ufeff` },

  // The top level.
  ...cases((text) => text, ["", " ", "\n\t\r ", "\ufeff", "[]", "[{}]", "null", "true", "1", '""']),
  { name: "an array with a signal", input: `[{${rest}]` },
  { name: "a string with a signal", input: JSON.stringify(`{${rest}`) },
  ...cases(
    (text) => `{${rest}${text}`,
    ["x", "}", "]", ",", "{}", "null", " 1", ";", "\0", "\u00a0"],
  ),
  ...cases(
    (text) => `${text}{${rest}`,
    ["x", "\u00a0", "\u2028", "\v", "\f", "\u3000", "\0", "//\n"],
  ),
  { name: "two signals, a line each", input: `{${rest}\n{${rest}\n` },
  { name: "an unfinished object", input: `{${rest.slice(0, -1)}` },
  { name: "a form", input: "source=venue_1&side=open" },

  // Members.
  ...cases(
    (text) => `{${text}${rest}`,
    [
      ",",
      '"a",',
      '"a":,',
      '"a"1,',
      '"a"=1,',
      '"a" "b":1,',
      "a:1,",
      "'a':1,",
      "1:1,",
      "null:1,",
      '"a":1;',
      '"a":1 ',
      '"a":1,,',
      '"a"::1,',
      '/**/"a":1,',
      '"a":1,//\n',
      '"a":1,#\n',
      '"a\n":1,',
      '"a:1,',
    ],
  ),
  { name: "a comma after the last member", input: `{${rest.slice(0, -1)},}` },

  // Values.
  ...cases(inMetadata, [
    "",
    "+1",
    ".5",
    "1.",
    "-.5",
    "-",
    "--1",
    "+-1",
    "01",
    "-01",
    "00",
    "1.e5",
    "1e",
    "1e+",
    "1E-",
    "1e1.5",
    "1e1e1",
    "0x10",
    "0b1",
    "0o7",
    "1_000",
    "1,5",
    "1n",
    "1f",
    "1 2",
    "NaN",
    "-NaN",
    "nan",
    "Infinity",
    "-Infinity",
    "inf",
    "\u0661", // an Arabic digit
    "\uff11", // a full-width digit
    "True",
    "TRUE",
    "tru",
    "truee",
    "fals",
    "nul",
    "nulll",
    "None",
    "undefined",
    "'a'",
    "`a`",
    "“a”",
    "a",
    "@",
    "$",
    '"a',
    'a"',
    '"a"b"',
    "[1,]",
    "[,1]",
    "[,]",
    "[1,,2]",
    "[1 2]",
    "[1",
    "1]",
    "[1}",
    "[1;2]",
    '{"a":1,}',
    "{,}",
    '{"a"}',
    "{1}",
    "{a:1}",
    '{"a":1]',
    '{"a":1 "b":2}',
    "/*c*/1",
    "1//c",
    "1/**/",
    "#c\n1",
    "1\u00a0",
    "\u00a01",
    "[\u20281]",
    "[1\u000b]",
    "[\f1]",
    "[\u00851]",
  ]),

  // Strings.
  ...Array.from({ length: 0x20 }, (_, code) => ({
    name: `a raw control character ${code} in a string`,
    input: inMetadata(`"a${String.fromCharCode(code)}b"`),
  })),
  ...Array.from({ length: 0x20 }, (_, code) => ({
    name: `a raw control character ${code} behind an escape`,
    input: inMetadata(`"\\n${String.fromCharCode(code)}b"`),
  })),
  ...cases(
    (text) => inMetadata(`"${text}"`),
    [
      "\\a",
      "\\v",
      "\\0",
      "\\'",
      "\\x41",
      "\\U0041",
      "\\N",
      "\\u",
      "\\u0",
      "\\u00",
      "\\u004",
      "\\u004g",
      "\\u 041",
      "\\u+041",
      "\\u-041",
      "\\u{41}",
      "\\u00\u0664\u0661",
      "\\\n",
      "\\",
      "\\é",
      "\\😀",
    ],
  ),

  // Unpaired surrogates.
  ...[
    "\\ud800",
    "\\udbff",
    "\\udc00",
    "\\udfff",
    "\\uD83D",
    "a\\ud83d",
    "\\ud83db",
    "\\ude00\\ud83d",
    "\\ud83d\\ud83d\\ude00",
    "\\ud83d\\ude00\\ude00",
    "\\ud83d\\u0041",
    "\\ud83d\\n\\ude00",
    "\\ud83d😀",
    "\\ud83d \\ude00",
  ].flatMap((text) => [
    { name: `${text} in metadata`, input: inMetadata(`"${text}"`) },
    { name: `${text} in an array in metadata`, input: inMetadata(`[[["${text}"]]]`) },
    { name: `${text} in a name in metadata`, input: inMetadata(`{"${text}":1}`) },
    { name: `${text} in a member`, input: `{"client_signal_id":"${text}",${rest}` },
    { name: `${text} in a member's name`, input: `{"${text}":1,${rest}` },
  ]),

  // Duplicate names.
  ...[
    '"a":1,"a":1',
    '"a":1,"b":2,"a":3',
    '"a":1,"\\u0061":1',
    '"\\u0061":1,"a":1',
    '"\\n":1,"\\u000a":1',
    '"\\/":1,"/":1',
    '"":1,"":2',
    '"😀":1,"\\ud83d\\ude00":2',
    '"__proto__":1,"__proto__":2',
    '"constructor":1,"constructor":2',
    '"é":1,"\\u00E9":2',
    `${Array.from({ length: 40 }, (_, index) => `"n${index}":1`).join(",")},"n39":2`,
    `${Array.from({ length: 40 }, (_, index) => `"n${index}":1`).join(",")},"n0":2`,
    `${Array.from({ length: 9 }, (_, index) => `"n${index}":1`).join(",")},"n8":2`,
  ].flatMap((members) => [
    { name: `${members} at the top`, input: `{${members},${rest}` },
    { name: `${members} in metadata`, input: `{"metadata":{${members}},${rest}` },
    { name: `${members} deeper`, input: inMetadata(`[1,{"q":{${members}}}]`) },
  ]),
  { name: "a field twice", input: `{"side":"open",${rest}` },
  { name: "a field twice by escape", input: `{"\\u0073ide":"close",${rest}` },

  // Nesting: `metadata` and the object around it are two levels.
  { name: "33 levels of arrays", input: inMetadata(nested(31)) },
  { name: "33 levels of objects", input: inMetadata(`${'{"a":'.repeat(30)}{}${"}".repeat(30)}`) },
  { name: "60,000 levels", input: inMetadata(nested(30_000)) },
  { name: "60,000 opening brackets", input: `{"metadata":${"[".repeat(60_000)}` },
  { name: "10,000 opening objects", input: '{"a":'.repeat(10_000) },
];

test("what is not I-JSON is answered with 400, and stores nothing", async () => {
  const { post, dataDir } = await startTestApp();
  const got: Record<string, unknown> = {};
  for (const { name, input } of refused) {
    const { status, body } = await post(input);
    got[name] = status;
    if (status !== 400) continue;
    expect(body).toEqual({
      error: "bad_request",
      message: expect.stringMatching(/^The body is not valid JSON: [\x20-\x7e]+\.$/),
    });
  }
  expect(Object.keys(got)).toHaveLength(refused.length);
  expect(got).toEqual(Object.fromEntries(refused.map(({ name }) => [name, 400])));
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
});

/** Values of the member in `metadata`; each is stored to the byte. */
const accepted = [
  "0",
  "-0",
  "-1",
  "1.5",
  "1e5",
  "1E+5",
  "1e-5",
  "0.0e0",
  "1e999",
  "-1e-999",
  "1".repeat(400),
  `0.${"1".repeat(400)}`,
  "true",
  "false",
  "null",
  "[]",
  "{}",
  "[ ]",
  "{ }",
  "[1, 2 ,3\t,\r\n4]",
  '{ "a" :\t1\n,\r"b": 2 }',
  '""',
  '"a b"',
  '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u00E9"',
  '"\\u0000\\u001f\\u007f"',
  '"\u007f\u0080\u2028\u2029\ufeff\ufffd\uffff"',
  '"\\ud83d\\ude00\\uD83D\\uDE00"',
  '"\\ud83d\\ude00😀\\udbff\\udfff"',
  '{"\\ud83d\\ude00":1}',
  '{"é":1,"e\u0301":2,"E":3}',
  '{"a":{"a":{"a":1}},"b":{"a":1}}',
  '[{"a":1},{"a":1}]',
  '{"__proto__":1,"constructor":2,"toString":3,"":4}',
  nested(30),
  `${'{"a":'.repeat(29)}{}${"}".repeat(29)}`,
  `[${nested(29)},${nested(29)}]`,
  `[${"[],".repeat(5_000)}[]]`,
  "'a'".replaceAll("'", '"'),
];

test("what is I-JSON is stored, to the byte in metadata", async () => {
  const { post, dataDir } = await startTestApp();
  for (const text of accepted) {
    const { status, body } = await post(inMetadata(text));
    expect([text, status]).toEqual([text, 201]);
    const id = body["id"] as string;
    const rows = query(dataDir, "SELECT metadata FROM signals WHERE id = ?", id);
    expect(rows).toEqual([{ metadata: `{"x":${text}}` }]);
  }
});

test("white space around everything, and one byte order mark, are accepted", async () => {
  const { post } = await startTestApp();
  const members = Object.entries(signal).map(([name, value]) => `"${name}"\r\n:\t"${value}" `);
  const spaced = ` \t\r\n{ ${members.join(" ,\n")} }\n \t\r\n`;
  expect((await post(spaced)).status).toBe(201);
  expect((await post(`\ufeff${spaced}`)).status).toBe(201);
  expect((await post(`\ufeff{${rest}`)).status).toBe(201);
});

test("an invalid byte sequence leaves nothing behind in the decoder", () => {
  for (const bytes of Object.values(invalidUtf8)) {
    expect(() => decodeUtf8(new Uint8Array(bytes))).toThrow(JsonError);
    expect(decodeUtf8(new Uint8Array([0x41, 0xc3, 0xa9]))).toBe("Aé");
  }
});

const RUNS = { numRuns: 500 };

/** Strings of any UTF-16 units: surrogates in pairs, and without. */
const anyUnits = fc.string({
  unit: fc.oneof(
    { weight: 8, arbitrary: fc.string({ unit: "binary", minLength: 1, maxLength: 1 }) },
    {
      weight: 1,
      arbitrary: fc.integer({ min: 0xd800, max: 0xdfff }).map((u) => String.fromCharCode(u)),
    },
  ),
  maxLength: 6,
});
const wellFormed = fc.string({ unit: "binary", maxLength: 8 });

function anyObject(text: fc.Arbitrary<string>): fc.Arbitrary<Record<string, unknown>> {
  const { object } = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
    object: fc.dictionary(
      fc.oneof(text, fc.constantFrom("a", "__proto__", "toString")),
      tie("value"),
      {
        maxKeys: 12,
      },
    ),
    value: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom<unknown>(null, true, false),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer(),
      text,
      fc.array(tie("value"), { maxLength: 4 }),
      tie("object"),
    ),
  }));
  return object;
}

test("of any object that JSON.stringify writes, what JSON.parse reads is read, and the same", () => {
  fc.assert(
    fc.property(anyObject(wellFormed), fc.constantFrom("", " ", "\t"), (object, indent) => {
      const text = JSON.stringify(object, null, indent);
      const members = readObject(text);
      const parsed = JSON.parse(text) as Record<string, unknown>;
      expect(members.map(({ name }) => name).toSorted()).toEqual(Object.keys(parsed).toSorted());
      for (const { name, kind, value, raw } of members) {
        const want = Object.getOwnPropertyDescriptor(parsed, name)?.value as unknown;
        expect(JSON.parse(raw)).toEqual(want);
        expect(kind).toBe(kindOf(want));
        if (want === null || typeof want !== "object") expect(Object.is(value, want)).toBe(true);
        else expect(value).toBeNull();
      }
    }),
    RUNS,
  );
});

test("an object with an unpaired surrogate anywhere is refused, and no other one", () => {
  fc.assert(
    fc.property(anyObject(anyUnits), (object) => {
      const read = attempt(JSON.stringify(object));
      if (isWellFormed(object)) expect(read).toBeNull();
      else expect(read).toMatch(/^an unpaired surrogate/);
    }),
    RUNS,
  );
});

test("nesting is accepted up to the limit, in every mixture of objects and arrays", () => {
  const level = fc.constantFrom<[string, string]>(["[", "]"], ['{"a":', "}"], ["[1,[],", "]"]);
  fc.assert(
    fc.property(fc.array(level, { minLength: 20, maxLength: 40 }), (levels) => {
      const open = levels.map(([before]) => before).join("");
      const close = levels
        .map(([, after]) => after)
        .toReversed()
        .join("");
      const read = attempt(`{"x":${open}0${close}}`);
      // "[1,[]," has a level beside the next one, so it counts one more only where it is the innermost.
      const depth = 1 + levels.length + (levels.at(-1)?.[0] === "[1,[]," ? 1 : 0);
      if (depth <= JSON_DEPTH_MAX) expect(read).toBeNull();
      else expect(read).toMatch(/^nesting deeper than 32/);
    }),
    RUNS,
  );
});

/** Reasons that JSON.parse does not have: the profile's own. */
const PROFILE =
  /^(duplicate member name|an unpaired surrogate|nesting deeper|the top level must be)/;

test("a damaged text is refused wherever JSON.parse refuses it, and else only for the profile", () => {
  const pieces = [
    '"',
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "0",
    "1",
    "-",
    "+",
    ".",
    "e",
    "E",
    " ",
    "\n",
  ];
  const piece = fc.constantFrom(
    ...pieces,
    "\u0000",
    "\u00a0",
    "\\u",
    "true",
    "null",
    "'",
    "/",
    "a",
  );
  const damage = fc.record({ at: fc.nat(), remove: fc.nat({ max: 2 }), add: piece });
  let refusals = 0;
  fc.assert(
    fc.property(
      anyObject(wellFormed),
      fc.array(damage, { minLength: 1, maxLength: 3 }),
      (object, all) => {
        const text = all.reduce((before, { at, remove, add }) => {
          const start = at % (before.length + 1);
          return before.slice(0, start) + add + before.slice(start + remove);
        }, JSON.stringify(object));
        const read = attempt(text);
        if (read !== null) refusals += 1;
        if (isJson(text)) expect(read ?? "duplicate member name").toMatch(PROFILE);
        else expect(read).not.toBeNull();
      },
    ),
    { numRuns: 1_500 },
  );
  expect(refusals).toBeGreaterThan(500);
});

/** Null where it is accepted, else the reason. */
function attempt(text: string): string | null {
  try {
    readObject(text);
    return null;
  } catch (error) {
    if (error instanceof JsonError) return error.message;
    throw error;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function kindOf(value: unknown): Member["kind"] {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : (typeof value as Member["kind"]);
}

function isWellFormed(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (value === null || typeof value !== "object") return true;
  return Object.entries(value).every(([name, inner]) => name.isWellFormed() && isWellFormed(inner));
}

function utf16(text: string, isLittleEndian: boolean): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(text.length * 2));
  for (let at = 0; at < text.length; at += 1) {
    bytes.setUint16(at * 2, text.charCodeAt(at), isLittleEndian);
  }
  return new Uint8Array(bytes.buffer);
}
