/** The signal that is sent: one body for all loads, so that all requests have the same size. */
import type { LoadKind } from "./load.ts";

/** Stands for the id in a body; as long as a UUID. */
export const ID_PLACEHOLDER = "#".repeat(36);

/** How many stored signals the duplicates repeat. */
export const DUPLICATE_IDS = 1_000;

const body = `{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open","direction":"long","price":64250.5,"quantity":0.25,"signal_time":1790000000000,"client_signal_id":"${ID_PLACEHOLDER}","metadata":{"take_profit":66000,"stop_loss":63000}}`;

/** Contains {@link ID_PLACEHOLDER}. An invalid body has an unknown source. */
export function bodyOf(kind: LoadKind): string {
  return kind === "invalid" ? body.replace("venue_2", "venue_9") : body;
}

/** wrk.lua makes the same ones. */
export function duplicateId(seed: number, number: number): string {
  return `${seed.toString(16).padStart(8, "0")}-${String(number).padStart(27, "0")}`;
}
