/**
 * Reads JSON by the profile I-JSON (RFC 7493): an object at the top, no duplicate member names at any
 * depth, no unpaired surrogates, bounded nesting. `JSON.parse` checks the grammar (RFC 8259); the scan
 * in this file checks the rest, and keeps nested values as they were sent, because `JSON.parse` loses
 * big integers, long decimals and white space.
 */

/** Nesting of objects and arrays, the outermost one counted. */
const DEPTH_MAX = 32;

export interface JsonObject {
  readonly members: Readonly<Record<string, unknown>>;
  /** Name of each member that is an object or array → its text, exactly as sent. */
  readonly texts: ReadonlyMap<string, string>;
}

/** Why a body is refused. The message names the reason and place, never the content. */
export class JsonError extends Error {}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** Accepts a leading byte order mark. Throws {@link JsonError}. */
export function readJsonObject(bytes: Uint8Array): JsonObject {
  const text = orJsonError("it is not valid UTF-8", () => decoder.decode(bytes));
  if (text === "") throw new JsonError("it is empty");
  const value: unknown = orJsonError(
    "it has a syntax error, such as an unquoted name, a single quote, NaN or an extra comma",
    () => JSON.parse(text),
  );
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new JsonError("the top level must be an object");
  }
  return { members: value as JsonObject["members"], texts: scan(text) };
}

function orJsonError<T>(reason: string, read: () => T): T {
  try {
    return read();
  } catch {
    throw new JsonError(reason);
  }
}

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Takes text that `JSON.parse` has accepted; returns {@link JsonObject.texts}. Throws {@link JsonError}. */
function scan(text: string): Map<string, string> {
  const texts = new Map<string, string>();
  /** The names seen so far in each open object; for an open array the set stays empty. */
  const open: Set<string>[] = [];
  let member = "";
  let memberStart = 0;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = closingQuote(text, at);
        const string = decode(text, at, end);
        if (isName(text, end)) {
          const names = open.at(-1);
          if (names?.has(string) === true) fail("duplicate member name", at);
          names?.add(string);
          if (open.length === 1) member = string;
        }
        at = end;
        break;
      }
      case OPEN_BRACE:
      case OPEN_BRACKET:
        open.push(new Set());
        if (open.length > DEPTH_MAX) fail(`nesting deeper than ${DEPTH_MAX}`, at);
        if (open.length === 2) memberStart = at;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        open.pop();
        if (open.length === 1) texts.set(member, text.slice(memberStart, at + 1));
        break;
    }
  }
  return texts;
}

function closingQuote(text: string, openingQuote: number): number {
  for (let at = openingQuote + 1; ; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at += 1;
  }
}

/** The bytes were valid UTF-8, so an unpaired surrogate can only come from an escape. */
function decode(text: string, openingQuote: number, end: number): string {
  const raw = text.slice(openingQuote + 1, end);
  if (!raw.includes("\\")) return raw;
  const decoded = JSON.parse(`"${raw}"`) as string;
  if (!decoded.isWellFormed()) fail("an unpaired surrogate", openingQuote);
  return decoded;
}

/** Whether the string that ends here has a colon behind it. */
function isName(text: string, end: number): boolean {
  let at = end + 1;
  while (text.charCodeAt(at) <= 0x20) at += 1;
  return text.charCodeAt(at) === COLON;
}

function fail(reason: string, at: number): never {
  throw new JsonError(`${reason}, at character ${at + 1}`);
}
