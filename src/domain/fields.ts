/**
 * Turns a field's definition into its rule: the check of one JSON member, giving the reason that
 * `SPEC.md` 7 asks for or null. TypeBox's own checker is not used because it counts UTF-16 units
 * where JSON Schema counts characters, and has no words for the reasons.
 */
import type { TSchema } from "@sinclair/typebox";
import type { Kind } from "./ijson.ts";

/** Gets a member as it was read. */
export type FieldRule = (kind: Kind, value: unknown) => string | null;

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
  return (kind, value) => {
    if (kind !== "number" || !Number.isInteger(value)) return "must be an integer";
    const number = value as number;
    return number >= min && number <= max ? null : rangeReason;
  };
}

const objectRule: FieldRule = (kind) => (kind === "object" ? null : "must be an object");
