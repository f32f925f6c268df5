/**
 * Turns a field's definition into its rule: the check of one JSON member, giving the reason that
 * `SPEC.md` 7 asks for or null. TypeBox's own checker is not used because it counts UTF-16 units
 * where JSON Schema counts characters, sees `1e999` and `1.00000000000000000001` only after
 * rounding, and has no words for the reasons.
 */
import type { TSchema } from "@sinclair/typebox";
import type { Kind } from "./ijson.ts";

const ZERO = 0x30;
const NINE = 0x39;

/** Gets a member as it was read; `raw` is the text that it was sent as. */
export type FieldRule = (kind: Kind, value: unknown, raw: string) => string | null;

/** Throws on a definition that it has no rule for, so that a new kind of field cannot go unchecked. */
export function fieldRule(schema: TSchema): FieldRule {
  if (Array.isArray(schema["enum"])) return enumRule(schema["enum"] as string[]);
  switch (schema["type"]) {
    case "string":
      return textRule(schema["minLength"], schema["maxLength"], schema["pattern"]);
    case "number":
      return numberRule;
    case "integer":
      return integerRule(schema["minimum"], schema["maximum"]);
    case "object":
      return objectRule;
    default:
      throw new Error(`no rule for a field of type ${String(schema["type"])}`);
  }
}

function enumRule(values: readonly string[]): FieldRule {
  const reason = `must be one of: ${values.join(", ")}`;
  return (kind, value) => (kind === "string" && values.includes(value as string) ? null : reason);
}

function textRule(charactersMin: number, charactersMax: number, pattern: string): FieldRule {
  const allowed = new RegExp(pattern, "u");
  const lengthReason = `must have ${charactersMin} to ${charactersMax} characters`;
  return (kind, value) => {
    if (kind !== "string") return "must be a string";
    const text = value as string;
    if (!hasLength(text, charactersMin, charactersMax)) return lengthReason;
    return allowed.test(text) ? null : "must not contain control characters";
  };
}

/** Length in characters (code points). UTF-16 has one or two units for each. */
function hasLength(text: string, min: number, max: number): boolean {
  if (text.length < min || text.length > max * 2) return false;
  if (text.length <= max) return true;
  return Array.from(text).length <= max;
}

const numberRule: FieldRule = (kind, value) => {
  if (kind !== "number") return "must be a number";
  return Number.isFinite(value) ? null : "must be a finite number";
};

function integerRule(min: number, max: number): FieldRule {
  const rangeReason = `must be from ${min} to ${max}`;
  return (kind, value, raw) => {
    if (kind !== "number" || !isWhole(raw)) return "must be an integer";
    const number = value as number;
    return number >= min && number <= max ? null : rangeReason;
  };
}

const objectRule: FieldRule = (kind) => (kind === "object" ? null : "must be an object");

/** Whether a JSON number is whole as written (`1.7e12`, `1.0`), before any rounding to a double. */
function isWhole(raw: string): boolean {
  if (isDigits(raw)) return true;
  const parts = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(raw);
  if (parts === null) return false;
  const [, whole = "", fraction = "", exponent = "0"] = parts;
  const digits = whole + fraction;
  const trailingZeros = countTrailingZeros(digits);
  if (trailingZeros === digits.length) return true;
  return Number(exponent) - fraction.length + trailingZeros >= 0;
}

/** Without an expression, because nearly every time is written so. */
function isDigits(raw: string): boolean {
  for (let at = 0; at < raw.length; at += 1) {
    const code = raw.charCodeAt(at);
    if (code < ZERO || code > NINE) return false;
  }
  return true;
}

/** A loop, because `/0+$/` takes quadratic time on many zeros before another digit. */
function countTrailingZeros(digits: string): number {
  let count = 0;
  while (count < digits.length && digits.charAt(digits.length - 1 - count) === "0") count += 1;
  return count;
}
