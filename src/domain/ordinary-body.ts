/**
 * The short way for the bodies that nearly all clients send: the native parser reads them, and a count
 * and a look into the text make up for what it does not tell. A body that is plainly JSON gets its
 * values or its reasons here; any other is left to the strict reader (`ijson.ts`).
 *
 * The count finds repeated and unknown names: a text has two quotes, besides escaped ones, for each
 * name and each string value. Those that are found here, in the known fields and all through the
 * object among them, stand in the text once each; so twice their number is the number of quotes only
 * if none is left over. An unknown name is left over, and of names that are the same all but one, which
 * the parser drops (`__proto__` and `0` are names like any other to it). With the unknown names counted
 * too, what is left over is a repeated name.
 *
 * A look into the text finds a field's value behind its quoted name. Without a `\u`, escapes stand for
 * no letter, so that a known name is written in one way alone. The object's name comes before all that
 * is in the object, and for other fields the object is passed over. What is found instead may be a
 * string value (see `startOfValue`), or the end of a longer name, which is unknown and has a quote in
 * it. So for certain are only bodies without such a name, and without an array or another object.
 */
import { AppError, type FieldReasons, noReasons, REQUIRED_FIELD, UNKNOWN_FIELD } from "./errors.ts";
import type { FieldRule } from "./fields.ts";
import { JSON_DEPTH_MAX, kindOf } from "./ijson.ts";

/**
 * The native parser takes five times as long as the strict reader for thousands of names, and far
 * longer for bottomless nesting. So the dearest body stays a large one that is read strictly.
 */
export const ORDINARY_BYTES_MAX = 8_192;

/** What a reader of bodies has to know of a field. */
export interface Field {
  readonly name: string;
  /** As its definition has it: `string`, `number`, `integer` or `object`. */
  readonly type: string;
  readonly isRequired: boolean;
  readonly check: FieldRule;
}

/** The members of a valid body by name; in the place of an object its text as sent. */
export type Values = Record<string, unknown>;

/**
 * `text` is what `bytes` decode to. Null says nothing of the body: the strict reader has to decide.
 * Throws `validation_failed`, with the reasons that the strict reader would give, in its order.
 */
export type OrdinaryReader = (bytes: Uint8Array, text: string) => Values | null;

export function ordinaryReader(fields: readonly Field[]): OrdinaryReader {
  const objects = fields.filter(({ type }) => type === "object");
  if (objects.length !== 1) throw new Error("one field is an object, and only one");
  const objectName = objects.map(({ name }) => name).join();
  const quotedObjectName = `"${objectName}"`;
  const quoted = fields.map((field) => ({ ...field, quotedName: `"${field.name}"` }));
  const names = new Set(fields.map(({ name }) => name));

  return (bytes, text) => {
    if (bytes.length > ORDINARY_BYTES_MAX) return null;
    const quotes = countQuotes(bytes);
    const values = Number.isNaN(quotes) ? null : parse(text);
    if (values === null) return null;

    const object = kindOf(values[objectName]) === "object" ? values[objectName] : null;
    const start = object === null ? text.length : startOfValue(text, quotedObjectName, 0);
    const end = object === null ? text.length : endOfObject(text, start);
    if (end < 0) return null;

    let reasons: FieldReasons | null = null;
    let found = countStrings(object, 2);
    for (const { name, quotedName, type, isRequired, check } of quoted) {
      const value = values[name];
      if (value === undefined) {
        if (isRequired) (reasons ??= noReasons())[name] = REQUIRED_FIELD;
        continue;
      }
      if (value !== object && isNested(value)) return null;
      let raw = DIGITS;
      if (type === "integer" && typeof value === "number") {
        if (hasFraction(value)) raw = FRACTION;
        else if (!isDigits(text, quotedName, start, end)) return null;
      }
      const reason = check(kindOf(value), value, raw);
      if (reason !== null) (reasons ??= noReasons())[name] = reason;
      found += typeof value === "string" ? 2 : 1;
    }
    if (found * 2 !== quotes) {
      const all = noReasons();
      found += countUnknown(values, names, all);
      if (found * 2 !== quotes) return null;
      reasons = Object.assign(all, reasons ?? {});
    }
    if (reasons !== null) throw new AppError("validation_failed", { fields: reasons });
    if (object !== null) values[objectName] = text.slice(start, end);
    return values;
  };
}

/** Stand for the text of an integer; rules for other types do not look at the text. */
const DIGITS = "0";
const FRACTION = "0.5";

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const ZERO = 0x30;
const NINE = 0x39;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** The quotes that are not escaped. NaN where there is a `\u`: see above, and it may be half of a pair. */
function countQuotes(bytes: Uint8Array): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) count += 1;
    else if (byte === BACKSLASH) {
      at += 1;
      if (bytes[at] === LETTER_U) return Number.NaN;
    }
  }
  return count;
}

function parse(text: string): Values | null {
  try {
    const value: unknown = JSON.parse(text);
    return kindOf(value) === "object" ? (value as Values) : null;
  } catch {
    return null;
  }
}

/**
 * Gives each unknown field its reason, in the order of the body. Returns how many names and strings
 * they are; NaN where a look into the text could take one for a known field: see above.
 */
function countUnknown(values: Values, known: ReadonlySet<string>, reasons: FieldReasons): number {
  let count = 0;
  for (const name of Object.keys(values)) {
    if (known.has(name)) continue;
    const value = values[name];
    if (isNested(value) || name.includes('"')) return Number.NaN;
    reasons[name] = UNKNOWN_FIELD;
    count += typeof value === "string" ? 2 : 1;
  }
  return count;
}

function isNested(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** Of a number too large for a double nobody knows. A fraction that a double lost is not seen. */
function hasFraction(value: number): boolean {
  return Number.isFinite(value) && !Number.isInteger(value);
}

/** The names and string values in a value. NaN, which equals no count, where it is nested too deep. */
function countStrings(value: unknown, depth: number): number {
  if (typeof value === "string") return 1;
  if (typeof value !== "object" || value === null) return 0;
  if (depth > JSON_DEPTH_MAX) return Number.NaN;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countStrings(item, depth + 1);
  } else {
    for (const name of Object.keys(value)) {
      count += 1 + countStrings((value as Values)[name], depth + 1);
    }
  }
  return count;
}

/**
 * Where the value of a name begins that is in the text. Where a string is the same and comes first, it
 * is the next name, which is no number and no object, or the end.
 */
function startOfValue(text: string, quotedName: string, from: number): number {
  const colon = skipSpace(text, text.indexOf(quotedName, from) + quotedName.length);
  return skipSpace(text, colon + 1);
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= SPACE) at += 1;
  return at;
}

/** The place behind the brace that closes the one at `start`; -1 where none is at `start`. */
function endOfObject(text: string, start: number): number {
  if (text.charCodeAt(start) !== OPEN_BRACE) return -1;
  let depth = 0;
  let at = start;
  do {
    const code = text.charCodeAt(at);
    if (code === OPEN_BRACE) depth += 1;
    else if (code === CLOSE_BRACE) depth -= 1;
    at = code === QUOTE ? endOfString(text, at) : at + 1;
  } while (depth > 0);
  return at;
}

/** The text is JSON, so there is an end. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
}

/** Whether a number is written in digits alone; the object from `start` to `end` is passed over. */
function isDigits(text: string, quotedName: string, start: number, end: number): boolean {
  let at = startOfValue(text, quotedName, 0);
  if (at > start) at = startOfValue(text, quotedName, end);
  let code = text.charCodeAt(at);
  while (code >= ZERO && code <= NINE) {
    at += 1;
    code = text.charCodeAt(at);
  }
  return code === COMMA || code === CLOSE_BRACE || code <= SPACE;
}
