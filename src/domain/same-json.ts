/** Compares JSON by meaning. */
import { isDeepStrictEqual } from "node:util";

/** Numbers with up to 15 digits and a small exponent are equal exactly when their doubles are. */
const BEYOND_DOUBLE = /[0-9.]{16}|[eE][+-]?[0-9]{3}/;
/** Exact comparison takes ten times as long, and must not delay the writer. */
const EXACT_CHARS_MAX = 8_192;

/**
 * Ignores white space, the order of members and the notation of strings and numbers. Numbers are compared
 * by their exact decimal value, so two that round to the same double may differ; texts over 8 KiB with
 * such numbers are the same only if they are identical. Both texts must be I-JSON.
 */
export function meansTheSame(one: string, other: string): boolean {
  if (one === other) return true;
  if (!isDeepStrictEqual(parse(one), parse(other))) return false;
  if (!BEYOND_DOUBLE.test(one) && !BEYOND_DOUBLE.test(other)) return true;
  if (Math.max(one.length, other.length) > EXACT_CHARS_MAX) return false;
  return isDeepStrictEqual(parseExactly(one), parseExactly(other));
}

/** Makes -0 into 0, which `isDeepStrictEqual` would tell apart. */
function parse(text: string): unknown {
  if (!text.includes("-0")) return JSON.parse(text);
  return JSON.parse(text, (_name, value: unknown) => (value === 0 ? 0 : value));
}

/** A class, so that it equals no object that a client sent. */
class Decimal {
  readonly digits: string;
  readonly exponent: bigint;

  constructor(digits: string, exponent: bigint) {
    this.digits = digits;
    this.exponent = exponent;
  }
}

type ParseWithSource = (
  text: string,
  revive: (name: string, value: unknown, context: { readonly source: string }) => unknown,
) => unknown;

function parseExactly(text: string): unknown {
  return (JSON.parse as ParseWithSource)(text, (_name, value, { source }) =>
    typeof value === "number" ? decimal(source) : value,
  );
}

/** `-12.50e3` becomes -125 × 10². */
function decimal(source: string): Decimal {
  const [mantissa = "", exponent = "0"] = source.toLowerCase().split("e");
  const sign = mantissa.startsWith("-") ? "-" : "";
  const [whole = "", fraction = ""] = mantissa.slice(sign.length).split(".");
  const digits = whole + fraction;
  let [start, end] = [0, digits.length];
  while (digits[start] === "0") start += 1;
  while (end > start && digits[end - 1] === "0") end -= 1;
  if (start === end) return new Decimal("0", 0n);
  const shift = digits.length - end - fraction.length;
  return new Decimal(sign + digits.slice(start, end), BigInt(exponent) + BigInt(shift));
}
