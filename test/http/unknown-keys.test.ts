/** Who sends keys that no desk has. */
import { expect, test } from "bun:test";
import {
  PER_ADDRESS_MAX,
  UNKNOWN_KEYS_MAX,
  UnknownKeys,
} from "../../src/http/limits/unknown-keys.ts";
import { DAY_MS } from "../../src/lib/text/time.ts";

const NOW = Date.UTC(2026, 10, 21);
const keyOf = (number: number) => `sbk_${number.toString(16).padStart(8, "0")}${"0".repeat(56)}`;
const MISTYPED = `sbk-${"1".repeat(64)}`;

test("they are counted by address and by the hash of their first eight characters", () => {
  const unknown = new UnknownKeys();
  for (const at of [1, 2, 3]) unknown.record("10.0.0.7", MISTYPED + at, NOW + at);
  unknown.record("10.0.0.8", null, NOW);
  unknown.record("10.0.0.8", "short-password", NOW);
  expect(unknown.list()).toEqual({
    keys: [
      // printf %s sbk-1111 | sha256sum | head -c 12
      {
        address: "10.0.0.7",
        hash: new Bun.CryptoHasher("sha256").update("sbk-1111").digest("hex").slice(0, 12),
        count: 3,
        first_at: NOW + 1,
        at: NOW + 3,
      },
      { address: "10.0.0.8", hash: null, count: 2, first_at: NOW, at: NOW },
    ],
    others: 0,
  });
  expect(JSON.stringify(unknown.list())).not.toContain("sbk");
});

test("a flood of keys that are made up does not displace a bot that sends once a minute", () => {
  const unknown = new UnknownKeys();
  const flood = (from: number, addressOf: (number: number) => string) => {
    for (let number = from; number < from + 5_000; number += 1) {
      unknown.record(addressOf(number), keyOf(number * 65_536), NOW);
    }
  };
  const bot = () => unknown.list().keys.find(({ address }) => address === "10.0.0.7")?.count;
  // From one address, also when it began first.
  flood(0, () => "192.0.2.1");
  for (let minute = 1; minute <= 3; minute += 1) {
    unknown.record("10.0.0.7", MISTYPED, NOW + minute);
    flood(minute * 5_000, () => "192.0.2.1");
    expect(bot()).toBe(minute);
  }
  // From thousands.
  flood(50_000, (number) => `192.0.${number % 256}.${number % 199}`);
  expect(bot()).toBe(3);
  const { keys, others } = unknown.list();
  expect(keys.length).toBeLessThanOrEqual(UNKNOWN_KEYS_MAX);
  expect(keys.filter(({ address }) => address === "192.0.2.1").length).toBeLessThanOrEqual(
    PER_ADDRESS_MAX,
  );
  expect(keys.reduce((sum, { count }) => sum + count, others)).toBe(25_003);
});

test("what was not sent for a day gives its place to others first", () => {
  const unknown = new UnknownKeys();
  for (let count = 0; count < 1_000; count += 1) unknown.record("10.0.0.7", MISTYPED, NOW);
  const later = NOW + DAY_MS + 1;
  for (let number = 0; number < UNKNOWN_KEYS_MAX; number += 1) {
    unknown.record(`192.0.2.${number}`, keyOf(0), later);
  }
  expect(unknown.list().keys.some(({ address }) => address === "10.0.0.7")).toBe(false);
  expect(unknown.list().others).toBe(1_000);
});
