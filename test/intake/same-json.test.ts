import { expect, test } from "bun:test";
import { meansTheSame } from "../../src/domain/signal/same-json.ts";

const long = "x".repeat(60_000);

const same: [string, string][] = [
  ['{"a":1,"b":2}', '{ "b" : 2,\n"a":1 }'],
  ['{"a":{"x":1,"y":[{"p":1,"q":2}]}}', '{"a":{"y":[{"q":2,"p":1}],"x":1}}'],
  ['{"a":1}', '{"a":1.0}'],
  ['{"a":1}', '{"a":10E-1}'],
  ['{"a":100}', '{"a":1e+2}'],
  ['{"a":-12.50e3}', '{"a":-12500}'],
  ['{"a":0.001}', '{"a":1e-3}'],
  ['{"a":0}', '{"a":-0}'],
  ['{"a":0}', '{"a":-0.0e5}'],
  ['{"a":9007199254740993}', '{"a":9007199254740992}'],
  ['{"a":"\\u0041\\/"}', '{"a":"A/"}'],
  ['{"__proto__":1,"a":2}', '{"a":2,"__proto__":1.0}'],
  [`{"a":1,"b":"${long}"}`, `{"b":"${long}","a":1.0}`],
];

const different: [string, string][] = [
  ['{"a":1}', '{"a":2}'],
  ['{"a":1}', '{"a":-1}'],
  ['{"a":1}', '{"a":"1"}'],
  ['{"a":1}', '{"a":true}'],
  ['{"a":null}', "{}"],
  ['{"a":1}', '{"A":1}'],
  ['{"a":[1,2]}', '{"a":[2,1]}'],
  ['{"a":[]}', '{"a":{}}'],
  ['{"a":["1"]}', '{"a":{"0":"1"}}'],
  ['{"a":"e\u0301"}', '{"a":"\u00e9"}'],
  ['{"__proto__":1}', "{}"],
  ['{"__proto__":{"x":1}}', '{"__proto__":{"x":2}}'],
];

const shortened = (text: string): string => text.replaceAll(long, "…");
const named = (pairs: [string, string][]) =>
  pairs.map(([one, other]) => [shortened(one), shortened(other), one, other] as const);

test.each(named(same))("%j means the same as %j", (_one, _other, one, other) => {
  expect([meansTheSame(one, other), meansTheSame(other, one)]).toEqual([true, true]);
});

test.each(named(different))("%j differs from %j", (_one, _other, one, other) => {
  expect([meansTheSame(one, other), meansTheSame(other, one)]).toEqual([false, false]);
});

test("compares metadata of the largest size with its members reversed", () => {
  const names = Array.from({ length: 6_000 }, (_, index) => `"${index}":-0`);
  const [one, other] = [names, names.toReversed()].map((members) => `{${members.join(",")}}`);
  expect(meansTheSame(one ?? "", other ?? "")).toBe(true);
});
