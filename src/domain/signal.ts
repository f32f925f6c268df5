/**
 * The signal as a desk submits it (`SPEC.md` 2.1): one TypeBox definition that validates requests
 * (see `fields.ts`), types the code and appears in `openapi.yaml`.
 */
import { type Static, Type } from "@sinclair/typebox";
import { AppError, type FieldReasons, noReasons, REQUIRED_FIELD, UNKNOWN_FIELD } from "./errors.ts";
import { type FieldRule, fieldRule } from "./fields.ts";
import { decodeUtf8, JsonError, type Member, readObject } from "./ijson.ts";

/** JSON text of a body, in bytes. */
export const BODY_BYTES_MAX = 65_536;
export const SYMBOL_CHARACTERS_MAX = 512;
export const CLIENT_SIGNAL_ID_CHARACTERS_MAX = 255;

const sources = ["venue_1", "venue_2", "venue_3"] as const;
const types = ["prediction_market", "crypto", "stock"] as const;
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
      }),
    ),
    client_signal_id: Type.Optional(
      Text(CLIENT_SIGNAL_ID_CHARACTERS_MAX, {
        description:
          `Idempotency key: a stable string that the client makes for each logical signal, 1 to ` +
          `${CLIENT_SIGNAL_ID_CHARACTERS_MAX} characters, no control characters. Compared code point by code ` +
          `point, per desk, for ever. Without it every request is stored as a new signal.`,
        examples: ["6f0b8a52-3a5c-4b87-9d57-0e4f2b1c7a11"],
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

/** A validated signal. Absent members are null; `metadata` is its JSON text as sent. */
export interface Signal {
  readonly source: Body["source"];
  readonly type: Body["type"];
  readonly symbol: string;
  readonly side: Body["side"];
  readonly direction: NonNullable<Body["direction"]> | null;
  /** A finite double. */
  readonly price: number | null;
  /** A finite double. */
  readonly quantity: number | null;
  /** Epoch milliseconds, 0 to 2^53-1. */
  readonly signal_time: number | null;
  readonly client_signal_id: string | null;
  readonly metadata: string | null;
}

interface Field {
  readonly name: string;
  readonly isRequired: boolean;
  readonly check: FieldRule;
}

const requiredFields: readonly string[] = SignalBody.required ?? [];
const fields: readonly Field[] = Object.entries(SignalBody.properties).map(([name, schema]) => ({
  name,
  isRequired: requiredFields.includes(name),
  check: fieldRule(schema),
}));
export const fieldNames: readonly string[] = fields.map(({ name }) => name);
const fieldIndex = new Map(fields.map(({ name }, index) => [name, index]));

/**
 * Reads and validates a body. Throws `bad_request` (400) where it is not I-JSON, and
 * `validation_failed` (422) with every invalid field at once (`SPEC.md` 7).
 */
export function parseSignal(bytes: Uint8Array): Signal {
  const text = orBadRequest(() => decodeUtf8(bytes));
  let reasons: FieldReasons | null = null;
  const found: (Member | undefined)[] = [];
  for (const member of orBadRequest(() => readObject(text))) {
    const index = fieldIndex.get(member.name);
    if (index !== undefined) found[index] = member;
    else (reasons ??= noReasons())[member.name] = UNKNOWN_FIELD;
  }
  const values: Record<string, unknown> = {};
  for (const [index, { name, isRequired, check }] of fields.entries()) {
    const member = found[index];
    if (member === undefined) {
      if (isRequired) (reasons ??= noReasons())[name] = REQUIRED_FIELD;
      continue;
    }
    const { kind, value, raw } = member;
    const reason = check(kind, value);
    if (reason === null) values[name] = kind === "object" ? raw : value;
    else (reasons ??= noReasons())[name] = reason;
  }
  if (reasons !== null) throw new AppError("validation_failed", { fields: reasons });
  return toSignal(values);
}

/** The values are valid. */
function toSignal(values: Record<string, unknown>): Signal {
  const valid = values as Partial<Signal>;
  return {
    source: valid.source as Signal["source"],
    type: valid.type as Signal["type"],
    symbol: valid.symbol as Signal["symbol"],
    side: valid.side as Signal["side"],
    direction: valid.direction ?? null,
    price: valid.price ?? null,
    quantity: valid.quantity ?? null,
    signal_time: valid.signal_time ?? null,
    client_signal_id: valid.client_signal_id ?? null,
    metadata: valid.metadata ?? null,
  } satisfies Record<keyof Body, unknown>;
}

function orBadRequest<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new AppError("bad_request", {
      message: `The body is not valid JSON: ${error.message}.`,
    });
  }
}
