import { describe, expect, test } from "bun:test";
import { hashOf, isIntact } from "../../src/domain/signal/hash.ts";
import type { Signal } from "../../src/domain/signal/signal.ts";
import type { Submission } from "../../src/domain/storage/append.ts";
import { emptySignal } from "../store/_signal.ts";

const ID = "01K5QZ8F3V9X2M7T4B6N1C0D8E";
const submission: Submission = { deskId: 1, keyId: ID, receivedAt: 5, signal: emptySignal };

const hex = (
  id: string,
  { signal, ...rest }: Partial<Omit<Submission, "signal">> & { readonly signal: Partial<Signal> },
) =>
  Buffer.from(
    hashOf(id, { ...submission, ...rest, signal: { ...emptySignal, ...signal } }),
  ).toString("hex");

test("is the same in every version: databases have it", () => {
  const signal = {
    source: "venue_2",
    type: "crypto",
    symbol: "é😀",
    side: "open",
    price: 64_250.5,
    signal_time: 1_790_000_000_000,
    client_signal_id: "c",
    metadata: '{ "a":\n"\\u0000" }',
  } as const;
  expect(hex(ID, { signal })).toBe("ce5e6e827a090153");
});

describe("differs", () => {
  const different: Record<string, string> = {
    "of an empty signal": hex(ID, submission),
    "with null as a text": hex(ID, { signal: { client_signal_id: "null" } }),
    "with a comma": hex(ID, { signal: { client_signal_id: 'a","b' } }),
    "with an empty text": hex(ID, { signal: { client_signal_id: "" } }),
    "with a value in another field": hex(ID, { signal: { metadata: "" } }),
    "with a number": hex(ID, { signal: { price: 1 } }),
    "with the number as another field": hex(ID, { signal: { quantity: 1 } }),
    "of another desk": hex(ID, { ...submission, deskId: 11 }),
    "of another time": hex(ID, { ...submission, receivedAt: 55 }),
    "of another key": hex(ID, { ...submission, keyId: `${ID.slice(0, -1)}F` }),
  };
  for (let at = 0; at < ID.length; at += 1) {
    const digit = ID[at] === "0" ? "1" : "0";
    different[`with character ${at} of the id changed`] = hex(
      `${ID.slice(0, at)}${digit}${ID.slice(at + 1)}`,
      submission,
    );
  }

  test.each(Object.entries(different))("%s", (name, hash) => {
    const same = Object.entries(different).filter(([, other]) => other === hash);
    expect(same.map(([other]) => other)).toEqual([name]);
  });
});

test("a row is intact with its hash alone, and not with values of other types", () => {
  const row = { ...emptySignal, id: ID, desk_id: 1, key_id: ID, received_at: 5 };
  const hash = hashOf(ID, submission);
  expect(isIntact({ ...row, hash: new Uint8Array(hash) })).toBe(true);
  for (const other of [
    { hash: hash.subarray(1) },
    { hash: new Uint8Array(8) },
    { hash: Buffer.from(hash).toString("latin1") },
    { hash: null },
    { id: ID.toLowerCase() },
    { id: `${ID.slice(0, 12)}p${ID.slice(13)}` },
    { id: 5 },
    { desk_id: "1" },
    { received_at: "5" },
    { symbol: 5 },
    { symbol: new Uint8Array([65]) },
  ]) {
    expect([other, isIntact({ ...row, hash, ...other } as never)]).toEqual([other, false]);
  }
});
