/**
 * Turns a field's definition into its check, which gives the reason that `SPEC.md` 7 asks for. TypeBox's
 * own checker counts UTF-16 units where JSON Schema counts characters, and has no such reasons.
 */
import type { TSchema } from "@sinclair/typebox";

/** Returns the reason to refuse a value, or null. */
type FieldCheck = (value: unknown) => string | null;

/** Marks a definition as epoch milliseconds. A symbol, so that it is not in `openapi.yaml`. */
export const EPOCH_MS = Symbol("epoch milliseconds");

/** Throws on a definition that it does not know, so that no field can go unchecked. */
export function fieldCheck(schema: TSchema): FieldCheck {
  if (Array.isArray(schema["enum"])) return checkOneOf(schema["enum"]);
  switch (schema["type"]) {
    case "string":
      return checkText(schema["minLength"], schema["maxLength"], schema["pattern"]);
    case "number":
      return checkNumber;
    case "integer":
      return checkInteger(schema["minimum"], schema["maximum"], EPOCH_MS in schema);
    case "object":
      return checkObject;
    default:
      throw new Error(`no check for a field of type ${String(schema["type"])}`);
  }
}

function checkOneOf(values: readonly unknown[]): FieldCheck {
  const reason = `must be one of: ${values.join(", ")}`;
  return (value) => (values.includes(value) ? null : reason);
}

function checkText(charactersMin: number, charactersMax: number, pattern: string): FieldCheck {
  const allowed = new RegExp(pattern, "u");
  const lengthReason = `must have ${charactersMin} to ${charactersMax} characters`;
  return (value) => {
    if (typeof value !== "string") return "must be a string";
    if (value.length < charactersMin || isLonger(value, charactersMax)) return lengthReason;
    return allowed.test(value) ? null : "must not contain control characters";
  };
}

/** In characters (code points): a character has one or two UTF-16 units. */
function isLonger(text: string, charactersMax: number): boolean {
  if (text.length <= charactersMax) return false;
  return text.length > 2 * charactersMax || Array.from(text).length > charactersMax;
}

function checkNumber(value: unknown): string | null {
  if (typeof value !== "number") return "must be a number";
  return Number.isFinite(value) ? null : "must be a finite number";
}

function checkInteger(min: number, max: number, isEpochMs: boolean): FieldCheck {
  const rangeReason = `must be from ${min} to ${max}`;
  return (value) => {
    if (typeof value !== "number" || !Number.isInteger(value)) {
      const hint =
        isEpochMs && isLikeSeconds(value) ? "; looks like seconds, send milliseconds" : "";
      return `must be an integer${hint}`;
    }
    return value >= min && value <= max ? null : rangeReason;
  };
}

/** Seconds of the years 1973 to 5138, such as Python's `time.time()`. */
export function isLikeSeconds(value: unknown): boolean {
  return typeof value === "number" && value > 1e8 && value < 1e11;
}

function checkObject(value: unknown): string | null {
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  return isObject ? null : "must be an object";
}
