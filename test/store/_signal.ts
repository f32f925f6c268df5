/** Valid signals, made from the definition of a signal. */
import { fieldNames, type Signal, SignalBody } from "../../src/domain/signal/signal.ts";

/** Everything optional is null. */
export const emptySignal = {
  ...Object.fromEntries(fieldNames.map((name) => [name, null])),
  source: "venue_1",
  type: "stock",
  symbol: "AAPL",
  side: "open",
} as Signal;

const hardValues: Readonly<Record<string, string | number>> = {
  string: "id \u0301 \u{1f600}",
  number: -1e300,
  integer: Number.MAX_SAFE_INTEGER,
  object: '{ "a": 1.00000000000000000001, "b": "\\u0000" }',
};

/** Every field has a value that is easily changed on its way. */
export const fullSignal = Object.fromEntries(
  Object.entries(SignalBody.properties).map(([name, { type, enum: values }]) => [
    name,
    (values as string[] | undefined)?.at(-1) ?? hardValues[String(type)],
  ]),
) as unknown as Signal;
