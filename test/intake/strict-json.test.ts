/** Which bodies get 400: everything that is not I-JSON (RFC 7493), and nothing else. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { JsonError, readJsonObject } from "../../src/domain/signal/strict-json.ts";
import { query, signal, startTestApp } from "../kit/setup.ts";

const rest = JSON.stringify(signal).slice(1);

/** A valid signal with this text as the value of `metadata`'s only member. */
const inMetadata = (text: string): string => `{"metadata":{"x":${text}},${rest}`;
const nested = (depth: number, open = "[", close = "]"): string =>
  open.repeat(depth) + close.repeat(depth);

/** Replaces the mark in a text by these bytes. */
function withBytes(text: string, bytes: readonly number[]): Uint8Array {
  const [before = "", after = ""] = text.split("@");
  return new Uint8Array([...Buffer.from(before), ...bytes, ...Buffer.from(after)]);
}

const invalidUtf8: Record<string, number[]> = {
  "a lone continuation byte": [0x80],
  "a byte of Latin-1": [0xe9],
  "a byte that no UTF-8 has": [0xff],
  "an overlong slash": [0xc0, 0xaf],
  "a code point above Unicode": [0xf4, 0x90, 0x80, 0x80],
  "a surrogate pair in six bytes": [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80],
  "a character cut short": [0xf0, 0x9f, 0x98],
};

const notGrammar = [
  "",
  "+1",
  ".5",
  "1.",
  "01",
  "0x10",
  "1_000",
  "NaN",
  "-Infinity",
  "True",
  "undefined",
  "'a'",
  "“a”",
  '"a',
  '"a\nb"',
  '"a\tb"',
  '"\\x41"',
  '"\\u{41}"',
  "[1,]",
  "[1 2]",
  '{"a":1,}',
  "{a:1}",
  '{"a":1 "b":2}',
  "1/*c*/",
  "1\u00a0",
];

const unpairedSurrogates = [
  "\\ud800",
  "\\udfff",
  "a\\ud83d",
  "\\ude00\\ud83d",
  "\\ud83d\\ud83d\\ude00",
  "\\ud83d\\n\\ude00",
  "\\ud83d😀",
];

const many = Array.from({ length: 40 }, (_, index) => `"n${index}":1`).join(",");
const duplicateNames = [
  '"a":1,"a":1',
  '"a":1,"b":{"a":2},"a":3',
  '"a":1,"\\u0061":1',
  '"":1,"":2',
  '"😀":1,"\\ud83d\\ude00":2',
  '"__proto__":1,"__proto__":2',
  `${many},"n0":2`,
];

const refused: Record<string, string | Uint8Array> = {
  ...Object.fromEntries(
    Object.entries(invalidUtf8).flatMap(([name, bytes]) => [
      [`${name}, in a string`, withBytes(inMetadata('"a@b"'), bytes)],
      [`${name}, at the end`, withBytes(`{${rest}@`, bytes)],
    ]),
  ),
  "UTF-16": Buffer.from(`\ufeff{${rest}`, "utf16le"),
  "two byte order marks": `\ufeff\ufeff{${rest}`,
  "a byte order mark inside": `{\ufeff${rest}`,
  "an array with a signal": `[{${rest}]`,
  "a string with a signal": JSON.stringify(`{${rest}`),
  "two signals": `{${rest}\n{${rest}`,
  "an unfinished object": `{${rest.slice(0, -1)}`,
  "a form": "source=venue_1&side=open",
  ...named(["", " ", "null", "true", "1", "[]"]),
  ...named(notGrammar.map(inMetadata)),
  ...named(
    unpairedSurrogates.flatMap((text) => [
      inMetadata(`[["${text}"]]`),
      inMetadata(`{"${text}":1}`),
      `{"client_signal_id":"${text}",${rest}`,
      `{"${text}":1,${rest}`,
    ]),
  ),
  ...named(
    duplicateNames.flatMap((members) => [
      `{${members},${rest}`,
      `{"metadata":{${members}},${rest}`,
      inMetadata(`[1,{"q":{${members}}}]`),
    ]),
  ),
  "a field twice": `{"side":"open",${rest}`,
  // `metadata` and the object around it are two levels.
  "33 levels of arrays": inMetadata(nested(31)),
  "33 levels of objects": inMetadata(`${'{"a":'.repeat(30)}{}${"}".repeat(30)}`),
  "60,000 levels": inMetadata(nested(30_000)),
  "60,000 opening brackets": `{"metadata":${"[".repeat(60_000)}`,
};

function named(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(texts.map((text) => [text, text]));
}

test("a body that is not I-JSON gets 400 and stores nothing", async () => {
  const { post, dataDir } = await startTestApp();
  for (const [name, input] of Object.entries(refused)) {
    const { status, body } = await post(input);
    expect([name, status]).toEqual([name, 400]);
    expect(body).toEqual({
      error: "bad_request",
      message: expect.stringMatching(/^The body (is|has|must be) [\x20-\x7e]+\.$/),
    });
  }
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
});

const accepted = [
  "-0",
  "1E+5",
  "1e999",
  "1".repeat(400),
  `0.${"1".repeat(400)}`,
  "[ true,\tfalse\r\n, null ]",
  '{ "a" :\t1\n,\r"b": 2 }',
  '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00E9\\u0000"',
  '"\u007f\u2028\ufeff\uffff"',
  '"\\ud83d\\ude00😀"',
  '{"é":1,"e\u0301":2,"E":3}',
  '{"a":{"a":{"a":1}},"b":{"a":1}}',
  '[{"a":1},{"a":1}]',
  '["a","a"]',
  '{"__proto__":1,"constructor":2,"":3,"}":"{"}',
  nested(30),
  `[${"[],".repeat(5_000)}[]]`,
];

test("a body that is I-JSON is stored, its metadata to the byte", async () => {
  const { post, dataDir } = await startTestApp();
  for (const text of accepted) {
    const { status, body } = await post(inMetadata(text));
    expect([text, status]).toEqual([text, 201]);
    const rows = query(dataDir, "SELECT metadata FROM signals WHERE id = ?", String(body["id"]));
    expect(rows).toEqual([{ metadata: `{"x":${text}}` }]);
  }
});

test("white space anywhere and one byte order mark are accepted", async () => {
  const { post } = await startTestApp();
  const members = Object.entries(signal).map(([name, value]) => `"${name}"\r\n:\t"${value}" `);
  expect((await post(`\ufeff \t\r\n{ ${members.join(" ,\n")} }\n \t\r\n`)).status).toBe(201);
});

test("the message gives the reason and the place, and never repeats the body", () => {
  expect(reasonFor('{"a":1,"a":2}')).toBe("has a duplicate member name, at character 8");
  expect(reasonFor('{"a":"\\ud800"}')).toBe("has an unpaired surrogate, at character 6");
  expect(reasonFor(`{"a":${nested(32)}}`)).toBe("is nested deeper than 32 levels, at character 37");
  expect(reasonFor("")).toBe("is empty");
  expect(reasonFor("[1]")).toBe("must be a JSON object");
  expect(reasonFor('{"a":sbk_123}')).toStartWith("is not valid JSON: it has a syntax error");
});

const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.integer({ min: 0xd800, max: 0xdfff }).map((unit) => String.fromCharCode(unit)),
  fc.constantFrom("a", "__proto__", "{", '"', "\\", ":"),
);
const { anyObject } = fc.letrec<{ value: unknown; anyObject: Record<string, unknown> }>((tie) => ({
  anyObject: fc.dictionary(anyText, tie("value"), { maxKeys: 12 }),
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<unknown>(null, true, 0, 1.5),
    anyText,
    fc.array(tie("value"), { maxLength: 4 }),
    tie("anyObject"),
  ),
}));

test("any object is read as JSON.parse reads it, unless it has an unpaired surrogate", () => {
  fc.assert(
    fc.property(anyObject, fc.constantFrom("", " ", "\t"), (object, indent) => {
      const text = JSON.stringify(object, null, indent);
      if (!isWellFormed(object)) {
        expect(reasonFor(text)).toStartWith("has an unpaired surrogate");
        return;
      }
      const { members, texts } = readJsonObject(new TextEncoder().encode(text));
      expect(members).toEqual(JSON.parse(text));
      const nestedMembers = Object.entries(members).filter(
        ([, value]) => value !== null && typeof value === "object",
      );
      expect([...texts().keys()]).toEqual(nestedMembers.map(([name]) => name));
      for (const [name, value] of nestedMembers) {
        expect(JSON.parse(texts().get(name) ?? "")).toEqual(value);
      }
    }),
    { numRuns: 500 },
  );
});

/** Null for a text that is accepted. */
function reasonFor(text: string): string | null {
  try {
    readJsonObject(new TextEncoder().encode(text));
    return null;
  } catch (error) {
    if (error instanceof JsonError) return error.message;
    throw error;
  }
}

function isWellFormed(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (value === null || typeof value !== "object") return true;
  return Object.entries(value).every(([name, inner]) => name.isWellFormed() && isWellFormed(inner));
}
