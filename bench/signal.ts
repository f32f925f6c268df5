/** The signal that is sent: one body for all loads, so that all requests are of one size. */
import type { LoadKind } from "./load.ts";

/** In the place of an id; as long as a UUID. */
export const ID_PLACEHOLDER = "#".repeat(36);

/** So many are stored before the duplicates of them are sent. */
export const DUPLICATE_IDS = 1_000;

const body = `{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open","direction":"long","price":64250.5,"quantity":0.25,"signal_time":1790000000000,"client_signal_id":"${ID_PLACEHOLDER}","metadata":{"take_profit":66000,"stop_loss":63000}}`;

/** With {@link ID_PLACEHOLDER} in it. An invalid one has a source that there is not. */
export function bodyOf(kind: LoadKind): string {
  return kind === "invalid" ? body.replace("venue_2", "venue_9") : body;
}

/** As wrk.lua makes them, too. */
export function duplicateId(seed: number, number: number): string {
  return `${seed.toString(16).padStart(8, "0")}-${String(number).padStart(27, "0")}`;
}
