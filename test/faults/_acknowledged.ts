/** Signals of several desks that a server has acknowledged, and what it says when they are sent again. */
import { callUrl } from "../_setup.ts";

export interface Acknowledged {
  readonly key: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly id: string;
}

/** Connections that send at once: as many as make transactions of several signals. */
const LANES = 16;

const directions = ["long", "short", "buy", "sell"];

/**
 * Of every shape: with and without each optional field, metadata of no page, one and several. Two
 * desks use the same `client_signal_id`s.
 */
export function bodyOf(number: number): Record<string, unknown> {
  const notes = number % 60 === 0 ? 9_000 : (number * 37) % 400;
  return {
    source: `venue_${1 + (number % 3)}`,
    type: "crypto",
    symbol: `SYM-${number}/USDT`,
    side: number % 2 === 0 ? "open" : "close",
    ...(number % 3 === 0 ? {} : { direction: directions[number % 4] }),
    ...(number % 4 === 0 ? {} : { price: number / 4, quantity: number * 1.1 }),
    ...(number % 5 === 0 ? {} : { signal_time: 1_790_000_000_000 + number }),
    ...(number % 7 === 0 ? {} : { client_signal_id: `signal-${number % 2}-${number >> 1}` }),
    ...(number % 3 === 1 ? {} : { metadata: { number, note: "n".repeat(notes) } }),
  };
}

export async function send(url: string, key: string, body: object) {
  return callUrl(url, "/v1/signals", {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** Sends signals number `from` and up with the keys in turn, until `count` of them are acknowledged. */
export async function sendSignals(
  url: string,
  keys: readonly string[],
  { from, count }: { from: number; count: number },
): Promise<Acknowledged[]> {
  const acknowledged: Acknowledged[] = [];
  let next = from;
  const lane = async (): Promise<void> => {
    while (next < from + count) {
      const number = next;
      next += 1;
      const [key, body] = [keys[number % keys.length] ?? "", bodyOf(number)];
      const answer = await send(url, key, body).catch(() => null);
      if (answer?.status !== 201) return;
      acknowledged.push({ key, body, id: String(answer.body["id"]) });
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return acknowledged;
}

export interface Answers {
  /** 200 with the id of then; 201 for new ones; 401 for revoked keys. */
  readonly right: number;
  /** 503, 500 or no answer: nobody is told anything that is not so. */
  readonly none: number;
  /** Everything else, in words. */
  readonly wrong: readonly string[];
}

/** Sends signals that it has again, new ones, and some with revoked keys. */
export async function ask(
  url: string,
  { again, keys, revoked }: { again: readonly Acknowledged[]; keys: string[]; revoked: string[] },
): Promise<Answers> {
  const wrong: string[] = [];
  let [right, none] = [0, 0];
  const hold = async (key: string, body: object, status: number, id?: string): Promise<void> => {
    const answer = await send(url, key, body).catch(() => null);
    if (answer === null || answer.status === 503 || answer.status === 500) none += 1;
    else if (answer.status === status && (id === undefined || answer.body["id"] === id)) right += 1;
    else wrong.push(`${answer.status} ${answer.text} for ${status} ${id ?? ""}`);
  };
  for (const { key, body, id } of again) {
    if (body["client_signal_id"] !== undefined) await hold(key, body, 200, id);
  }
  for (const [index, key] of keys.entries()) {
    for (let count = 0; count < 3; count += 1) {
      await hold(key, { ...bodyOf(1), client_signal_id: `new-${index}-${count}` }, 201);
    }
  }
  for (const key of revoked) await hold(key, bodyOf(1), 401);
  return { right, none, wrong };
}
