/** The signal that is sent: one body for all loads, so that all requests have the same size. */
import { type IdKind, newId, type Target } from "./load.ts";

const TIMEOUT_MS = 30_000;

/** Stands for the id in the body; as long as a UUID. */
export const ID_PLACEHOLDER = "#".repeat(36);

export const body = `{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open","direction":"long","price":64250.5,"quantity":0.25,"signal_time":1790000000000,"client_signal_id":"${ID_PLACEHOLDER}","metadata":{"take_profit":66000,"stop_loss":63000}}`;

/** Sends one signal. Returns the answer's body; throws unless its status is 201. */
export async function send({ port, key }: Target, ids: IdKind): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/signals`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: body.replace(ID_PLACEHOLDER, newId(ids)),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const text = await response.text();
  if (response.status !== 201) throw new Error(`a signal got ${response.status}: ${text}`);
  return text;
}
