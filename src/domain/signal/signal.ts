/**
 * The signal as a desk submits it (`SPEC.md` 2.1). This one TypeBox definition validates requests (see
 * `fields.ts`), types the code, appears in `openapi.yaml`, and names the columns of the database, the
 * export and the console's signal page. To add a field, change this file and `schema.sql`, and give its values and
 * reasons in `test/intake/fields.test.ts`: the compiler insists.
 */
import { type Static, Type } from "@sinclair/typebox";
import {
  AppError,
  type FieldReasons,
  noReasons,
  REQUIRED_FIELD,
  UNKNOWN_FIELD,
} from "../errors.ts";
import { EPOCH_MS, fieldCheck } from "./fields.ts";
import { JsonError, type JsonObject, readJsonObject } from "./strict-json.ts";

/** JSON text of a body, in bytes. */
export const BODY_BYTES_MAX = 65_536;
export const SYMBOL_CHARACTERS_MAX = 512;
export const CLIENT_SIGNAL_ID_CHARACTERS_MAX = 255;

export const sources = ["venue_1", "venue_2", "venue_3"] as const;
export const types = ["prediction_market", "crypto", "stock"] as const;
const sides = ["open", "close"] as const;
const directions = ["long", "short", "buy", "sell"] as const;

const OneOf = <const T extends string>(values: readonly T[], description: string) =>
  Type.Unsafe<T>({ type: "string", enum: [...values], description });

/** No characters of Unicode's category Cc: C0, DEL and C1. */
const Text = (charactersMax: number, options: { description: string; examples: string[] }) =>
  Type.String({
    minLength: 1,
    maxLength: charactersMax,
    pattern: "^[^\\u0000-\\u001F\\u007F-\\u009F]*$",
    ...options,
  });

const Double = (description: string) =>
  Type.Number({
    format: "double",
    description: `${description} Finite; the nearest IEEE 754 double is stored.`,
  });

export const SignalBody = Type.Object(
  {
    source: OneOf(sources, "Origin venue."),
    type: OneOf(types, "Instrument class."),
    symbol: Text(SYMBOL_CHARACTERS_MAX, {
      description: `Instrument symbol, free-form: 1 to ${SYMBOL_CHARACTERS_MAX} characters, no control characters.`,
      examples: ["BTC/USDT", "AAPL", "Will it rain tomorrow?"],
    }),
    side: OneOf(sides, "Whether the signal opens or closes a position."),
    direction: Type.Optional(OneOf(directions, "Direction of the position or order.")),
    price: Type.Optional(Double("Execution or limit price.")),
    quantity: Type.Optional(Double("Size.")),
    signal_time: Type.Optional(
      Type.Integer({
        format: "int64",
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "Event time of the client, epoch milliseconds.",
        examples: [1_790_000_000_000],
        [EPOCH_MS]: true,
      }),
    ),
    client_signal_id: Type.Optional(
      Text(CLIENT_SIGNAL_ID_CHARACTERS_MAX, {
        description:
          `Idempotency key: a stable string that the client generates per logical signal, 1 to ` +
          `${CLIENT_SIGNAL_ID_CHARACTERS_MAX} characters, no control characters. Compared code point by code ` +
          `point, per desk, with no time limit. Without it every request is stored as a new signal.`,
        examples: ["01a0c450-6c00-7c3e-9d57-0e4f2b1c7a11"],
      }),
    ),
    metadata: Type.Optional(
      Type.Unsafe<object>({
        type: "object",
        additionalProperties: true,
        description: "Any JSON object, stored exactly as sent, to the byte.",
        examples: [{ take_profit: 66_000, stop_loss: 63_000 }],
      }),
    ),
  },
  { additionalProperties: false },
);

type Body = Static<typeof SignalBody>;

type Value<T> = T extends object ? string : T;

/** A validated signal. Absent fields are null; `metadata` is its JSON text as sent. */
export type Signal = {
  readonly [F in keyof Body]-?: undefined extends Body[F]
    ? Value<NonNullable<Body[F]>> | null
    : Value<Body[F]>;
};

export const fieldNames = Object.keys(SignalBody.properties) as readonly (keyof Signal)[];

const required: readonly string[] = SignalBody.required ?? [];
const fields = Object.entries(SignalBody.properties).map(([name, schema]) => ({
  name,
  isRequired: required.includes(name),
  check: fieldCheck(schema),
}));
const known: ReadonlySet<string> = new Set(fieldNames);

/** How many unknown names an answer lists. */
const UNKNOWN_LISTED_MAX = 20;

/** The values that a key may send, per field; null: all. */
export type AllowedValues = Readonly<Partial<Record<keyof Signal, readonly string[] | null>>>;

/**
 * Reads and validates a body. Throws `bad_request` (400) for a body that is not I-JSON, and
 * `validation_failed` (422) with all invalid fields (`SPEC.md` 7); of the unknown ones it lists the first few.
 */
export function parseSignal(bytes: Uint8Array, allowed: AllowedValues | null = null): Signal {
  const { members, texts } = readBody(bytes);
  const signal: Record<string, unknown> = {};
  let reasons: FieldReasons | null = null;
  const unknown = Object.keys(members).filter((name) => !known.has(name));
  for (const name of unknown.slice(0, UNKNOWN_LISTED_MAX)) {
    (reasons ??= noReasons())[name] = UNKNOWN_FIELD;
  }
  for (const { name, isRequired, check } of fields) {
    let reason: string | null = null;
    if (Object.hasOwn(members, name)) {
      const value = members[name];
      reason = check(value) ?? (allowed && refusalOf(value, allowed[name as keyof Signal] ?? null));
      signal[name] = value;
    } else {
      if (isRequired) reason = REQUIRED_FIELD;
      signal[name] = null;
    }
    if (reason !== null) (reasons ??= noReasons())[name] = reason;
  }
  if (reasons !== null) {
    const unlistedFields = Math.max(0, unknown.length - UNKNOWN_LISTED_MAX);
    const id = members["client_signal_id"];
    const readable = typeof id === "string" ? { clientSignalId: id } : {};
    throw new AppError("validation_failed", { fields: reasons, unlistedFields, ...readable });
  }
  for (const [name, text] of texts()) signal[name] = text;
  return signal as Signal;
}

function refusalOf(value: unknown, allowed: readonly string[] | null): string | null {
  if (allowed === null || allowed.includes(String(value))) return null;
  return `must be one of: ${allowed.join(", ")}; the key is limited to these`;
}

/** Whether {@link parseSignal} could have returned it: for signals that were stored. */
export function isPossible(signal: Signal): boolean {
  return fields.every(({ name, isRequired, check }) => {
    const value = signal[name as keyof Signal];
    if (value === null) return !isRequired;
    return name === "metadata" ? isMetadata(String(value), check) : check(value) === null;
  });
}

function isMetadata(text: string, check: (value: unknown) => string | null): boolean {
  if (Buffer.byteLength(text) > BODY_BYTES_MAX) return false;
  try {
    return check(JSON.parse(text)) === null;
  } catch {
    return false;
  }
}

function readBody(bytes: Uint8Array): JsonObject {
  try {
    return readJsonObject(bytes);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new AppError("bad_request", { message: `The body ${error.message}.` });
  }
}
