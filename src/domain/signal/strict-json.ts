/**
 * Reads JSON by the profile I-JSON (RFC 7493): an object at the top, no duplicate member names at any
 * depth, no unpaired surrogates, bounded nesting. `JSON.parse` checks the grammar (RFC 8259); a scan
 * before it refuses deep nesting, counts the names, and finds the text of nested values, because
 * `JSON.parse` loses big integers, long decimals and white space. Duplicate names and unpaired surrogates
 * are looked for only where the count or an escape suggests one.
 */

/** Nesting of objects and arrays, the outermost one counted. */
const DEPTH_MAX = 32;

export interface JsonObject {
  readonly members: Readonly<Record<string, unknown>>;
  /** Name of each member that is an object or array → its text, exactly as sent. Made only when asked for. */
  readonly texts: () => ReadonlyMap<string, string>;
}

/** Why a body is refused. The message continues "The body": it names the reason and place, never the content. */
export class JsonError extends Error {}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** Accepts a leading byte order mark. Throws {@link JsonError}. */
export function readJsonObject(bytes: Uint8Array): JsonObject {
  const text = orJsonError("is not valid UTF-8", () => decoder.decode(bytes));
  if (text === "") throw new JsonError("is empty");
  const { names, nested } = scan(text);
  const value: unknown = orJsonError(
    "is not valid JSON: it has a syntax error, such as an unquoted name, a single quote, NaN or an extra comma",
    () => JSON.parse(text),
  );
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new JsonError("must be a JSON object");
  }
  // `JSON.parse` keeps only the last of several members with the same name.
  if (names !== countMembers(value) || SURROGATE_ESCAPE.test(text)) lookClosely(text);
  const texts = () => new Map(nested.map(([name, nestedText]) => [decode(name), nestedText]));
  return { members: value as JsonObject["members"], texts };
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

/** The bytes were valid UTF-8, so an unpaired surrogate can only come from an escape. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

interface Scan {
  /** Of all objects together: each has a colon. */
  readonly names: number;
  /** Name and text of each member that is an object or array, both as sent. */
  readonly nested: readonly (readonly [name: string, text: string])[];
}

/** Takes any text; the result is right if `JSON.parse` accepts the text. Throws {@link JsonError}. */
function scan(text: string): Scan {
  const nested: [string, string][] = [];
  let names = 0;
  let depth = 0;
  let stringStart = 0;
  let stringEnd = 0;
  let name = "";
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        stringStart = at;
        stringEnd = at = closingQuote(text, at);
        break;
      case COLON:
        names += 1;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth += 1;
        if (depth > DEPTH_MAX) fail(`is nested deeper than ${DEPTH_MAX} levels`, at);
        if (depth !== 2) break;
        name = text.slice(stringStart + 1, stringEnd);
        start = at;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth -= 1;
        if (depth === 1) nested.push([name, text.slice(start, at + 1)]);
        break;
    }
  }
  return { names, nested };
}

/** The end of the text if there is none. */
function closingQuote(text: string, openingQuote: number): number {
  let at = openingQuote + 1;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) break;
    if (code === BACKSLASH) at += 1;
  }
  return at;
}

function countMembers(value: object): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value as unknown[]) {
      if (item !== null && typeof item === "object") count += countMembers(item);
    }
    return count;
  }
  for (const name in value) {
    count += 1;
    const member = (value as Record<string, unknown>)[name];
    if (member !== null && typeof member === "object") count += countMembers(member);
  }
  return count;
}

/** Throws {@link JsonError} for the first duplicate name or unpaired surrogate in a text that `JSON.parse` accepts. */
function lookClosely(text: string): void {
  /** The names seen so far in each open object; for an open array the set stays empty. */
  const open: Set<string>[] = [];
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = closingQuote(text, at);
        const string = decode(text.slice(at + 1, end));
        if (!string.isWellFormed()) fail("has an unpaired surrogate", at);
        if (isName(text, end)) {
          const names = open.at(-1);
          if (names?.has(string) === true) fail("has a duplicate member name", at);
          names?.add(string);
        }
        at = end;
        break;
      }
      case OPEN_BRACE:
      case OPEN_BRACKET:
        open.push(new Set());
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        open.pop();
        break;
    }
  }
}

/** `raw`: what is between the quotes. */
function decode(raw: string): string {
  return raw.includes("\\") ? (JSON.parse(`"${raw}"`) as string) : raw;
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
