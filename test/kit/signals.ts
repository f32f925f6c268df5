/** Generated signals, and how JSON can write them. */
import * as fc from "fast-check";
import { fieldNames, type Signal, SignalBody } from "../../src/domain/signal/signal.ts";

/** Texts that databases, JSON readers, shells and log viewers take for something else. */
const pieces =
  `'; DROP TABLE signals; --|' OR 1=1 --|\\|"|\\u0000|%s%n|\${jndi:x}|<script>|__proto__|null|NaN|1e309
  |../../etc/passwd|é|e\u0301|Å|\u212b|ﬁ|İ|ß|SS|ａ|한|😀|\u200b|\ufffd| `.split(/\s*\|/);

const character = fc.oneof(
  fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }),
  fc.constantFrom("\u00a0", "\u200d", "\u202e", "\u2028", "\ufeff", "\uffff", "\u{10ffff}"),
  fc.constantFrom(...pieces),
);
/** Text without control characters. */
const plain = (charactersMax: number): fc.Arbitrary<string> =>
  fc
    .oneof(
      fc.array(character, { minLength: 1, maxLength: 20 }),
      character.map((one) => Array.from({ length: 600 }, () => one)),
    )
    .map((all) => Array.from(all.join("").replaceAll(/\p{Cc}/gu, "x")))
    .map((characters) => characters.slice(0, charactersMax).join(""));

/** The JSON text of a string, with each character raw or escaped, as the choices have it. */
function encode(text: string, choices: readonly number[]): string {
  const parts = Array.from(text).map((one, index) => {
    const choice = choices[index % choices.length] ?? 0;
    if (choice === 0) return JSON.stringify(one).slice(1, -1);
    const units = Array.from({ length: one.length }, (_, at) => one.charCodeAt(at));
    const escaped = units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
    return choice === 1 ? escaped : escaped.replaceAll(/[a-f]/g, (digit) => digit.toUpperCase());
  });
  return `"${parts.join("")}"`;
}

interface Sent {
  /** As stored. */
  readonly value: string | number;
  /** As sent. */
  readonly text: string;
}

const choices = fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 7 });
const jsonString = (text: fc.Arbitrary<string>): fc.Arbitrary<Sent> =>
  fc.tuple(text, choices).map(([value, how]) => ({ value, text: encode(value, how) }));
const oneOf = (...values: string[]) => jsonString(fc.constantFrom(...values));

const anyNumber = fc.oneof(
  fc.stringMatching(/^-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?$/),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom("-0", "0.1", "9007199254740993", "-9223372036854775809", "5e-324"),
);
const double = anyNumber
  .filter((text) => Number.isFinite(Number(text)))
  .map((text): Sent => ({ value: Number(text), text }));
const wholeNumber = fc
  .tuple(
    fc.oneof(
      fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
      fc.constantFrom(0, 2 ** 31, 2 ** 32, 2 ** 53 - 1),
    ),
    fc.constantFrom("", ".0", "E+00", ".0e0"),
  )
  .map(([value, suffix]): Sent => ({ value, text: `${value}${suffix}` }));

const whiteSpace = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\r"), maxLength: 3 });

/** The text of an object with white space, long numbers, and names that are unique once decoded. */
const { objectText } = fc.letrec<{ value: string; objectText: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "medium" },
    fc.constantFrom("null", "true", "1e999", "[]", "{}"),
    anyNumber,
    jsonString(fc.string({ unit: "binary", maxLength: 10 })).map(({ text }) => text),
    fc
      .tuple(fc.array(tie("value"), { maxLength: 4 }), whiteSpace)
      .map(([items, space]) => `[${space}${items.join(`${space},`)}${space}]`),
    tie("objectText"),
  ),
  objectText: fc
    .tuple(
      fc.uniqueArray(
        fc.tuple(jsonString(fc.string({ unit: "binary", maxLength: 8 })), tie("value")),
        { maxLength: 12, selector: ([name]) => name.value },
      ),
      whiteSpace,
    )
    .map(([members, space]) => {
      const texts = members.map(([name, value]) => `${space}${name.text}${space}:${value}${space}`);
      return `{${texts.join(",")}}`;
    }),
}));

/** What each field may be, by its definition. */
const fields = Object.fromEntries(
  Object.entries(SignalBody.properties).map(([name, { type, enum: values, maxLength }]) => {
    if (Array.isArray(values)) return [name, oneOf(...(values as string[]))];
    if (type === "number") return [name, double];
    if (type === "integer") return [name, wholeNumber];
    if (type === "object") return [name, objectText.map((text) => ({ value: text, text }))];
    // Room for what makes an id unique.
    return [name, jsonString(plain(Number(maxLength) - 10))];
  }),
) as Record<keyof Signal, fc.Arbitrary<Sent>>;

export const anySignal = fc.record({
  sent: fc.record<Partial<Record<keyof Signal, Sent>>>(fields, {
    requiredKeys: ["source", "type", "symbol", "side"],
  }),
  order: fc.shuffledSubarray([...fieldNames], { minLength: fieldNames.length }),
  how: choices,
  space: whiteSpace,
});
type AnySignal = typeof anySignal extends fc.Arbitrary<infer T> ? T : never;

/** The same, with this `client_signal_id`. */
export function withId({ sent, ...rest }: AnySignal, id: string): AnySignal {
  return { ...rest, sent: { ...sent, client_signal_id: { value: id, text: JSON.stringify(id) } } };
}

export function bodyOf({ sent, order, how, space }: AnySignal): string {
  const members = order.flatMap((name) => {
    const text = sent[name]?.text;
    return text === undefined ? [] : [`${encode(name, how)}${space}:${text}${space}`];
  });
  return `${space}{${members.join(`,${space}`)}}${space}`;
}
