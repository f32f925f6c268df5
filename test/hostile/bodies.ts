/**
 * Generated bodies: signals whose every part may be the wrong one, and texts and bytes that are no
 * signals at all. What the answer must be is not known here; the oracle reads it off the bytes.
 */
import * as fc from "fast-check";
import {
  badPieces,
  hugeNumbers,
  MARK,
  marks,
  names,
  noNumbers,
  numbers,
  pieces,
  strayBytes,
  surroundings,
  values,
} from "./words.ts";

/** A body before its marker is put in: see {@link bodyOf}. */
export interface BodyPlan {
  readonly kind: string;
  readonly text: string;
  readonly damage: readonly Damage[];
}

interface Damage {
  /** Modulo the length. */
  readonly at: number;
  readonly remove: number;
  readonly add: Uint8Array;
}

/** The bytes to be sent. */
export function bodyOf({ text, damage }: BodyPlan, marker: string): Buffer {
  let bytes = Buffer.from(text.replaceAll(MARK, marker), "utf8");
  for (const { at, remove, add } of damage) {
    const start = at % (bytes.length + 1);
    bytes = Buffer.concat([bytes.subarray(0, start), add, bytes.subarray(start + remove)]);
  }
  return bytes;
}

const pick = (...texts: string[]) => fc.constantFrom(...texts);

/** One in `count` is the rare one. */
const oneIn = <T>(count: number, rare: fc.Arbitrary<T>, common: fc.Arbitrary<T>) =>
  fc.oneof({ weight: count - 1, arbitrary: common }, { weight: 1, arbitrary: rare });

/** A character's escape, in the place of the first letter that there is. */
const respelt = (text: string): string =>
  text.replace(/[a-z]/, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`);

const phrase = fc
  .array(oneIn(60, pick(...badPieces), pick(...pieces)), { minLength: 1, maxLength: 4 })
  .map((all) => all.join(""));
const quoted = phrase.map((text) => `"${text}"`);

/** Around the limits of symbol and client_signal_id, in characters of one, two and four bytes. */
const longString = fc
  .tuple(
    pick("a", "é", "😀", "e\u0301", "\\u00e9"),
    fc.constantFrom(254, 255, 256, 510, 511, 512, 513),
  )
  .map(([one, count]) => `"${one.repeat(count)}"`);

const double = fc.double({ noNaN: true, noDefaultInfinity: true });
const number = oneIn(
  25,
  oneIn(3, pick(...noNumbers), pick(...hugeNumbers)),
  oneIn(
    5,
    double.map((value) => JSON.stringify(value)),
    pick(...numbers),
  ),
);
const time = oneIn(
  4,
  number,
  fc
    .tuple(fc.maxSafeNat(), pick("", ".0", ".000", "e0", "E+0", "e-0", ".0e0", "000e-3"))
    .map((parts) => parts.join("")),
);
const anyValue = fc.oneof(pick(...values), quoted, number, longString);
const gap = oneIn(5, fc.string({ unit: pick(" ", "\t", "\n", "\r"), maxLength: 3 }), pick(""));

/** The text of an object: names may come twice in it, numbers may be none. */
const { object: objectText } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    pick(...values, "1e999", "1.10"),
    oneIn(150, pick(...noNumbers), pick(...numbers, ...hugeNumbers)),
    quoted,
    fc.array(tie("value"), { maxLength: 3 }).map((all) => `[${all.join(", ")}]`),
    tie("object"),
  ),
  object: fc
    .array(
      fc.tuple(
        oneIn(5, pick(...names), pick("a", "b", "c", "d", "é", "e\u0301")),
        gap,
        tie("value"),
      ),
      { maxLength: 4 },
    )
    .map((all) => `{${all.map(([name, space, value]) => `"${name}"${space}:${value}`).join(",")}}`),
}));

/** Metadata whose innermost part is about as deep as it may be. */
const deepObject = fc
  .array(fc.constantFrom<[string, string]>(["[", "]"], ['{"a":', "}"], ["[1,[],", "]"]), {
    minLength: 26,
    maxLength: 34,
  })
  .map((levels) => {
    const close = levels.map(([, after]) => after).toReversed();
    return `{"x":${levels.map(([before]) => before).join("")}0${close.join("")}}`;
  });

/** One of an enumeration, as it is or by an escape; seldom something else. */
const word = (...all: string[]) =>
  oneIn(
    40,
    fc.oneof(
      anyValue,
      pick(...all).map((one) => `"${one.toUpperCase()}"`),
    ),
    fc
      .tuple(pick(...all), fc.boolean())
      .map(([one, isRespelt]) => `"${isRespelt ? respelt(one) : one}"`),
  );

/** Few enough to come again, in spellings that are the same to some and not to us. */
const pooledId = fc
  .tuple(
    pick("", " ", "\u200b"),
    fc.nat({ max: 12 }),
    pick("", "é", "e\u0301", "\\u00e9", "É", "\\u0061", "a", "A", "ａ", " ", "\u00a0"),
  )
  .map(([before, count, after]) => `"${before}id-${count}${after}"`);
const clientId = fc.oneof(
  { weight: 10, arbitrary: pooledId },
  { weight: 8, arbitrary: phrase.map((text) => `"${MARK}${text}"`) },
  { weight: 1, arbitrary: longString },
  { weight: 1, arbitrary: anyValue },
);
const symbol = fc.oneof(
  { weight: 6, arbitrary: phrase.map((text) => `"${text}${MARK}"`) },
  { weight: 3, arbitrary: pick('"BTC/USDT"', '"AAPL"', '"Will it rain?"') },
  { weight: 1, arbitrary: oneIn(2, longString, quoted) },
);
const metadata = fc.oneof(
  { weight: 8, arbitrary: objectText },
  { weight: 3, arbitrary: fc.constant(`{"note":"${MARK}"}`) },
  { weight: 1, arbitrary: oneIn(2, deepObject, anyValue) },
);

/** A field's text, or null where it is left out. */
const mostly = (text: fc.Arbitrary<string>) => oneIn<string | null>(60, fc.constant(null), text);
const maybe = (text: fc.Arbitrary<string>) => fc.option(text, { freq: 2 });

const fields = fc.record({
  source: mostly(word("venue_1", "venue_2", "venue_3")),
  type: mostly(word("prediction_market", "crypto", "stock")),
  symbol: mostly(symbol),
  side: mostly(word("open", "close")),
  direction: maybe(word("long", "short", "buy", "sell")),
  price: maybe(oneIn(30, anyValue, number)),
  quantity: maybe(number),
  signal_time: maybe(time),
  client_signal_id: maybe(clientId),
  metadata: maybe(metadata),
});

const members = fc.tuple(fields, fc.nat({ max: 9 }), gap).map(([texts, turn, space]) => {
  const all = Object.entries(texts).flatMap(([name, text]) =>
    text === null ? [] : [`${space}"${name}"${space}:${space}${text}`],
  );
  return [...all.slice(turn), ...all.slice(0, turn)];
});

const textOf = (all: readonly string[]): string => `{${all.join(",")}}`;
const whole = members.map(textOf);

/** Members that are not ours, or one of ours again, as it is or by another spelling. */
const oddMembers = fc
  .tuple(
    members,
    fc.array(
      fc.tuple(pick(...names), pick(...values)).map(([name, value]) => `"${name}":${value}`),
      { minLength: 1, maxLength: 3 },
    ),
    fc.nat(),
    fc.nat({ max: 9 }),
  )
  .map(([own, others, place, how]) => {
    const again = own[place % own.length] ?? '"a":1';
    const more = [[again], [respelt(again)], [...others, ...others]][how] ?? others;
    return textOf(own.toSpliced(place % (own.length + 1), 0, ...more));
  });

/** `{ … }` and blanks, of a size about the limit. */
const sized = fc
  .tuple(whole, fc.constantFrom(65_534, 65_535, 65_536, 65_537, 70_000, 131_072), fc.boolean())
  .map(([text, size, isBefore]) => {
    const blanks = " ".repeat(Math.max(0, size - Buffer.byteLength(text)));
    return isBefore ? blanks + text : text + blanks;
  });

const bottomless = fc
  .tuple(fc.constantFrom(33, 100, 10_000), pick("[", '{"a":', "[{"))
  .map(([depth, open]) => `{"metadata":{"x":${open.repeat(depth)}`);

const stray = fc.constantFrom(...strayBytes);
const anyBytes = fc.oneof(
  fc.uint8Array({ maxLength: 3 }),
  pick(...marks).map((mark) => new Uint8Array(Buffer.from(mark))),
);
const damage = (add: fc.Arbitrary<Uint8Array>, removeMax: number, countMax: number) =>
  fc.array(fc.record({ at: fc.nat(), remove: fc.nat({ max: removeMax }), add }), {
    minLength: 1,
    maxLength: countMax,
  });
const cut = fc.nat().map((at) => [{ at, remove: Infinity, add: new Uint8Array() }]);
const framed = fc
  .tuple(pick(...surroundings), whole, pick(...surroundings))
  .map((all) => all.join(""));

const plan = (
  kind: string,
  text: fc.Arbitrary<string>,
  damages: fc.Arbitrary<Damage[]> = fc.constant([]),
) => fc.record({ kind: fc.constant(kind), text, damage: damages });

export const hostileBody: fc.Arbitrary<BodyPlan> = fc.oneof(
  { weight: 60, arbitrary: plan("signal", whole) },
  { weight: 12, arbitrary: plan("odd members", oddMembers) },
  { weight: 12, arbitrary: plan("damaged", whole, damage(anyBytes, 2, 3)) },
  { weight: 6, arbitrary: plan("stray bytes", whole, damage(stray, 0, 1)) },
  { weight: 4, arbitrary: plan("framed", framed) },
  { weight: 2, arbitrary: plan("cut", whole, cut) },
  { weight: 3, arbitrary: plan("any JSON", fc.oneof(fc.json(), anyValue, objectText)) },
  {
    weight: 1,
    arbitrary: plan("any bytes", pick(""), damage(fc.uint8Array({ maxLength: 80 }), 0, 1)),
  },
  { weight: 1, arbitrary: plan("bottomless", bottomless) },
  { weight: 1, arbitrary: plan("sized", sized) },
);
