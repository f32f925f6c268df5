/** Generated bodies: good signals of any content, and bodies with something wrong in them. */
import * as fc from "fast-check";
import { BODY_BYTES_MAX } from "../../src/domain/signal/signal.ts";
import { anySignal, bodyOf, withId } from "../kit/signals.ts";
import { marker } from "./target.ts";

export interface HostileBody {
  readonly bytes: Buffer;
  /** It must be stored. Any documented answer is right for the others. */
  readonly isGood: boolean;
}

/** Few enough to repeat, and spelt so that folding or trimming would make two of them one. */
const pooledId = fc
  .tuple(
    fc.constantFrom("", " ", "\u200b"),
    fc.nat(9),
    fc.constantFrom("a", "A", "ａ", "é", "e\u0301"),
  )
  .map((all) => all.join("id"));

const goodText = fc
  .tuple(anySignal, fc.option(pooledId))
  .map(([one, id]) => bodyOf(id === null ? one : withId(one, id)))
  .filter((text) => Buffer.byteLength(text) <= BODY_BYTES_MAX);

const values = [
  ...`null true -0 1.0 1e999 1e-400 9007199254740993 5e-324 01 +1 .5 1. 0x10 NaN Infinity [] {} "" "\\ud800" "\\u0000" "x`.split(
    " ",
  ),
  `"${"a".repeat(256)}"`,
  `"${"b".repeat(70_000)}"`,
  "[".repeat(10_000),
  "9".repeat(400),
];
const names =
  `source symbol side price signal_time client_signal_id metadata clientSignalId client_signal_Id __proto__
  constructor toString id seq desk_id key_id \\u0073ide`.split(/\s+/);

/** Members before the others: unknown ones, wrong ones, and names that come twice. */
const oddMember = fc
  .tuple(goodText, fc.constantFrom(...names, marker), fc.constantFrom(...values))
  .map(([text, name, value]) => text.replace("{", () => `{"${name}":${value},`));

/** Bytes removed, added and replaced: invalid UTF-8, control characters, JSON's own marks. */
const scraps = [
  ...`80 c0af c3 e282 eda080 f4908080 ff fffe efbbbf 00 0a`
    .split(" ")
    .map((hex) => Buffer.from(hex, "hex")),
  ...`{ } [ ] " , : \\ / - . e 0 '`.split(" ").map((text) => Buffer.from(text)),
];
const damaged = fc
  .tuple(
    goodText,
    fc.array(fc.tuple(fc.nat(), fc.constantFrom(0, 0, 1, 2, 1e9), fc.constantFrom(...scraps)), {
      minLength: 1,
      maxLength: 3,
    }),
  )
  .map(([text, cuts]) => {
    let bytes = Buffer.from(text);
    for (const [at, remove, add] of cuts) {
      const start = at % (bytes.length + 1);
      bytes = Buffer.concat([bytes.subarray(0, start), add, bytes.subarray(start + remove)]);
    }
    return bytes;
  });

const bad = fc.oneof(
  { weight: 3, arbitrary: oddMember.map((text) => Buffer.from(text)) },
  { weight: 3, arbitrary: damaged },
  { weight: 1, arbitrary: fc.json().map((text) => Buffer.from(text)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes)) },
);

export const hostileBody: fc.Arbitrary<HostileBody> = fc.oneof(
  fc.record({ bytes: goodText.map((text) => Buffer.from(text)), isGood: fc.constant(true) }),
  fc.record({ bytes: bad, isGood: fc.constant(false) }),
);
