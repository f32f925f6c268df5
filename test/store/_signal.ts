/** A valid signal in which everything optional is null. */
import { fieldNames, type Signal } from "../../src/domain/signal/signal.ts";

export const emptySignal = {
  ...Object.fromEntries(fieldNames.map((name) => [name, null])),
  source: "venue_1",
  type: "stock",
  symbol: "AAPL",
  side: "open",
} as Signal;
