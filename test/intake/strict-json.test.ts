/** Which bodies get 400: everything that is not I-JSON (RFC 7493), and nothing else. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { JsonError, readJsonObject } from "../../src/domain/signal/strict-json.ts";
import { query, signal, startTestApp } from "../kit/setup.ts";

const rest = JSON.stringify(signal).slice(1);

/** A valid signal with this text as the value of `metadata`'s only member. */
const inMetadata = (text: string): string => `{"metadata":{"x":${text}},${rest}`;
const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

/** A signal with these bytes in the place of the mark. */
function withBytes(text: string, ...bytes: number[]): Uint8Array {
  const [before = "", after = ""] = text.split("@");
  return new Uint8Array([...Buffer.from(before), ...bytes, ...Buffer.from(after)]);
}

const refused: Record<string, string | Uint8Array> = {
  "a byte of Latin-1": withBytes(inMetadata('"a@b"'), 0xe9),
  "an overlong slash": withBytes(inMetadata('"a@b"'), 0xc0, 0xaf),
  "a surrogate pair in six bytes": withBytes(inMetadata('"@"'), 0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80),
  "a character cut short, at the end": withBytes(`{${rest}@`, 0xf0, 0x9f, 0x98),
  "UTF-16": Buffer.from(`\ufeff{${rest}`, "utf16le"),
  "two byte order marks": `\ufeff\ufeff{${rest}`,
  nothing: "",
  "white space": " ",
  null: "null",
  "an array with a signal": `[{${rest}]`,
  "a string with a signal": JSON.stringify(`{${rest}`),
  "two signals": `{${rest}\n{${rest}`,
  "a form": "source=venue_1&side=open",
  "NaN, as Python writes it": inMetadata("NaN"),
  "a comment": inMetadata("1/*c*/"),
  "a tab in a string": inMetadata('"a\tb"'),
  "an unpaired surrogate": `{"client_signal_id":"\\ud800",${rest}`,
  "a field twice": `{"side":"open",${rest}`,
  // `metadata` and the object around it are two levels.
  "33 levels": inMetadata(nested(31)),
  "60,000 opening brackets": `{"metadata":${"[".repeat(60_000)}`,
};

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

interface Generated {
  readonly text: string;
  readonly depth: number;
  /** No name twice, and no unpaired surrogate. */
  readonly isValid: boolean;
}
type Member = readonly [name: Generated & { readonly value: string }, value: Generated];

const piece = fc.constantFrom(
  "a",
  "b",
  "😀",
  "\ud83d",
  "\ude00",
  "\n",
  '"',
  "\\",
  "{",
  "]",
  ":",
  "__proto__",
);
/** As JSON writes it, or with each unit escaped, in hexadecimal digits of either case. */
const anyString = fc
  .tuple(fc.array(piece, { maxLength: 3 }), fc.constantFrom("plain", "lower", "upper"))
  .map(([pieces, how]) => {
    const value = pieces.join("");
    const units = value.split("").map((unit) => unit.charCodeAt(0).toString(16).padStart(4, "0"));
    const digits = how === "upper" ? units.map((unit) => unit.toUpperCase()) : units;
    const escaped = `"${digits.map((unit) => `\\u${unit}`).join("")}"`;
    const text = how === "plain" ? JSON.stringify(value) : escaped;
    return { value, text, depth: 0, isValid: value.isWellFormed() };
  });
const space = fc.constantFrom("", " ", "\r\n\t");

function around(open: string, items: readonly Generated[], close: string, gap: string): Generated {
  return {
    text: `${open}${gap}${items.map(({ text }) => text).join(`${gap},`)}${gap}${close}`,
    depth: 1 + Math.max(0, ...items.map(({ depth }) => depth)),
    isValid: items.every(({ isValid }) => isValid),
  };
}

function objectOf(members: readonly Member[], gap: string): Generated {
  const items = members.map(([name, value]) => ({
    ...value,
    text: `${name.text}${gap}:${value.text}`,
    isValid: name.isValid && value.isValid,
  }));
  const object = around("{", items, "}", gap);
  const isUnique = new Set(members.map(([{ value }]) => value)).size === members.length;
  return { ...object, isValid: object.isValid && isUnique };
}

const { members: anyMembers } = fc.letrec<{ value: Generated; members: Member[] }>((tie) => ({
  members: fc.array(fc.tuple(anyString, tie("value")), { maxLength: 5 }),
  value: fc.oneof(
    { depthSize: "small" },
    fc
      .constantFrom("null", "true", "-0", "1e999", "123456789012345678901234567890", "1.50")
      .map((text) => ({ text, depth: 0, isValid: true })),
    anyString,
    fc
      .tuple(fc.array(tie("value"), { maxLength: 3 }), space)
      .map(([items, gap]) => around("[", items, "]", gap)),
    fc.tuple(tie("members"), space).map(([members, gap]) => objectOf(members, gap)),
    // Deep enough to exceed the limit.
    fc.tuple(tie("value"), fc.integer({ min: 25, max: 32 })).map(([value, levels]) => ({
      ...value,
      text: "[".repeat(levels) + value.text + "]".repeat(levels),
      depth: value.depth + levels,
    })),
  ),
}));

test("any object is read as JSON.parse reads it, its nested members to the byte, unless it is not I-JSON", () => {
  const seen = { accepted: 0, refused: 0 };
  fc.assert(
    fc.property(anyMembers, space, (members, gap) => {
      const { text, depth, isValid } = objectOf(members, gap);
      const isAccepted = isValid && depth <= 32;
      seen[isAccepted ? "accepted" : "refused"] += 1;
      expect([text, reasonFor(text) === null]).toEqual([text, isAccepted]);
      if (!isAccepted) return;
      const read = readJsonObject(new TextEncoder().encode(text));
      expect(read.members).toEqual(JSON.parse(text));
      const inner = members.filter(([, { depth: levels }]) => levels > 0);
      expect([...read.texts()]).toEqual(inner.map(([name, value]) => [name.value, value.text]));
    }),
    { numRuns: 1_000 },
  );
  expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(100);
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
