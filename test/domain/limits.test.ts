/** What a key may be limited to. */
import { describe, expect, test } from "bun:test";
import {
  type AskedLimits,
  checkLimits,
  describeLimits,
  NETWORKS_MAX,
  RATE_MAX,
} from "../../src/domain/key/limits.ts";
import { Networks } from "../../src/domain/networks.ts";
import { UserError } from "../../src/lib/errors.ts";

const none = { networks: null, sources: null, types: null, rate: null };
const networks = (count: number) => Array.from({ length: count }, (_, n) => `10.0.${n}.0/24`);

test("what is not asked for is not limited, and nothing at all is no limits", () => {
  expect(checkLimits({}, "send")).toBeNull();
  expect(checkLimits({ networks: [], sources: [], types: [], rate: null }, "send")).toBeNull();
  expect(checkLimits({ rate: RATE_MAX }, "read")).toEqual({ ...none, rate: RATE_MAX });
  expect(checkLimits({ networks: networks(NETWORKS_MAX) }, "read")?.networks).toHaveLength(20);
});

test("a value that was given twice counts once", () => {
  const twice = [...networks(NETWORKS_MAX), "10.0.0.0/24"];
  expect(checkLimits({ networks: twice }, "send")).toEqual({
    ...none,
    networks: networks(NETWORKS_MAX),
  });
  expect(checkLimits({ types: ["stock", "stock"] }, "send")?.types).toEqual(["stock"]);
});

describe("is refused, with what to write", () => {
  const key = `sbk_${"0f".repeat(32)}`;
  const rate = "A key's rate is a whole number of requests per second, from 1 to 100000.";
  const reads =
    "A read key sends no signals, so it has no sources or types: limit its networks or its rate instead.";
  const source = "There is no such source: write venue_1, venue_2, venue_3.";
  const network = "not an address range: write it like 10.0.0.0/8, 2001:db8::/32 or 203.0.113.7.";
  test.each<[string, AskedLimits, string, ("send" | "read")?]>([
    ["a misspelt source", { sources: ["venu_2"] }, `${source} Did you mean venue_2?`],
    ["another source", { sources: ["venue_1", "binance"] }, source],
    ["a key as a source", { sources: [key] }, source],
    [
      "a misspelt type",
      { types: ["cripto"] },
      "There is no such type: write prediction_market, crypto, stock. Did you mean crypto?",
    ],
    ["an inherited name", { types: ["constructor"] }, "There is no such type: "],
    ["a prefix that is too long", { networks: ["10.0.0.0/33"] }, `"10.0.0.0/33" is ${network}`],
    ["an empty prefix", { networks: ["10.0.0.0/"] }, network],
    ["two prefixes", { networks: ["10.0.0.0/8/8"] }, network],
    ["a name", { networks: ["bots.example.com"] }, network],
    ["an interface", { networks: ["fe80::1%eth0"] }, network],
    ["an octal number", { networks: ["010.0.0.1"] }, network],
    ["digits of another script", { networks: ["１0.0.0.1"] }, network],
    ["a line break", { networks: ["10.0.0.1\n"] }, network],
    ["a key as a network", { networks: [key] }, `This is ${network}`],
    [
      "one network too many",
      { networks: networks(NETWORKS_MAX + 1) },
      "A key can have 20 networks, and these are 21: combine them into larger ones.",
    ],
    ["no rate", { rate: 0 }, rate],
    ["half a rate", { rate: 0.5 }, rate],
    ["a rate that is no number", { rate: Number.NaN }, rate],
    ["a rate that is too high", { rate: RATE_MAX + 1 }, rate],
    ["a read key with a source", { sources: ["venue_1"] }, reads, "read"],
    ["a read key with a type", { types: ["stock"] }, reads, "read"],
  ])("%s", (_, asked, sentence, scope = "send") => {
    const error = thrownBy(() => checkLimits(asked, scope));
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).message).toContain(sentence);
    expect((error as UserError).message).not.toContain("0f0f");
  });
});

test("limits in words", () => {
  const all = checkLimits(
    { networks: ["10.0.0.0/8", "::1"], sources: ["venue_1"], types: ["stock"], rate: 1 },
    "send",
  );
  if (all === null) throw new Error("no limits");
  expect(describeLimits(all)).toBe(
    "networks 10.0.0.0/8, ::1; sources venue_1; types stock; 1 request per second",
  );
  expect(describeLimits({ ...none, rate: 1200 })).toBe("1,200 requests per second");
});

test("networks have the addresses of both families, however they are written, and nothing else", () => {
  const some = new Networks([
    "203.0.113.77/24",
    "2001:DB8::/32",
    "192.0.2.7",
    "::ffff:10.0.0.0/104",
  ]);
  const inside =
    "203.0.113.0 203.0.113.255 ::ffff:203.0.113.9 ::FFFF:203.0.113.9 ::ffff:cb00:7109 2001:db8::1 2001:0db8:0:0:0:0:0:1 192.0.2.7 10.1.2.3";
  for (const address of inside.split(" ")) {
    expect([address, some.includes(address)]).toEqual([address, true]);
  }
  const outside =
    "203.0.112.255 203.0.114.0 ::203.0.113.9 2001:db9::1 192.0.2.8 11.0.0.0 fe80::1%eth0 localhost 203.0.113.9/24";
  for (const address of ["", " ", "203.0.113.9 ", ...outside.split(" ")]) {
    expect([address, some.includes(address)]).toEqual([address, false]);
  }
  expect(new Networks([]).includes("127.0.0.1")).toBe(false);
});

function thrownBy(work: () => unknown): unknown {
  try {
    work();
    return null;
  } catch (error) {
    return error;
  }
}
