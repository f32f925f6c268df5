/** What is kept of a rejected body has nothing that looks like a key. */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { withoutSecrets } from "../../src/domain/activity/secrets.ts";
import { keptBody, keptValues, SENT_BYTES_MAX } from "../../src/domain/activity/sent.ts";

const KEY = `sbk_${"0123456789abcdef".repeat(4)}`;

/** As `keptBody` gets it. */
function bodyOf(bytes: Uint8Array, length = bytes.length) {
  const answer = {
    status: 400,
    error: "bad_request",
    fields: null,
    moreFields: 0,
    message: null,
  } as const;
  const from = { deskId: 1, keyId: "key-1", requestId: "1", at: 0 };
  return keptBody({ ...from, answer, clientSignalId: null, start: bytes, bytes: length });
}

const keep = (text: string) => bodyOf(Buffer.from(text)).body;

/** Everything that somebody could decode by hand: no escapes, nothing invisible. */
function decoded(text: string): string {
  let plain = text;
  for (let level = 0; level < 20; level += 1) {
    plain = plain.replaceAll(/\\+(?:u005c)*u([0-9a-f]{4})/gi, (_, hex: string) =>
      String.fromCharCode(parseInt(hex, 16)),
    );
  }
  return plain.replaceAll(/[\p{Cc}\p{Default_Ignorable_Code_Point}\ufffd\\]/gu, "").toLowerCase();
}

/** Twelve characters of a key in a row. */
function expectNothingOf(key: string, text: string): void {
  const secret = key.slice(4).toLowerCase();
  const seen = decoded(text);
  for (let at = 0; at + 12 <= secret.length; at += 1) {
    expect({ text, part: seen.includes(secret.slice(at, at + 12)) }).toEqual({ text, part: false });
  }
}

const escapeOf = (character: string) => `u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
/** How a character may be written in JSON, also in JSON that is a string in JSON. */
const forms: readonly ((character: string) => string)[] = [
  (character) => character,
  (character) => `\\${escapeOf(character)}`,
  (character) => `\\${escapeOf(character).toUpperCase().replace("U", "u")}`,
  (character) => `\\\\${escapeOf(character)}`,
  (character) => `\\u005c${escapeOf(character)}`,
  (character) => `\u200b${character}`,
  (character) => `${character}\u0001`,
];
const contexts: readonly ((text: string) => string)[] = [
  (text) => `{"symbol":"${text}","side":"up"}`,
  (text) => `{"${text}":1}`,
  (text) => `{"metadata":{"note":"mein Schlüssel ${text}, bitte"}}`,
  (text) => `{"metadata":"{\\"note\\":\\"${text}\\"}"}`,
  (text) => text,
  (text) => `key=${text}&side=open`,
  (text) => `{'side': '${text}'}`,
  (text) => `[${text}`,
];

const anyKey = fc
  .tuple(
    fc.constantFrom("sbk_", "sbr_", "SBK_", ""),
    fc.uint8Array({ minLength: 32, maxLength: 32 }),
  )
  .map(([prefix, bytes]) => prefix + Buffer.from(bytes).toString("hex"))
  // Without a prefix, letters or digits alone are no key.
  .filter((key) => /\d/.test(key.slice(-64, -48)) && /[a-f]/.test(key.slice(-64, -48)));
const anyWritten = fc
  .tuple(anyKey, fc.array(fc.nat(forms.length - 1), { minLength: 1, maxLength: 70 }))
  .map(([key, ways]) => ({
    key,
    text: Array.from(key, (character, at) =>
      (forms[ways[at % ways.length] ?? 0] ?? String)(character),
    ).join(""),
  }));

test("a generated key is not kept, however it is escaped, wherever it stands, and wherever the body is cut", () => {
  fc.assert(
    fc.property(
      anyWritten,
      fc.nat(contexts.length - 1),
      fc.uint8Array({ maxLength: 8 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      ({ key, text }, context, noise, share) => {
        const written = Buffer.from((contexts[context] ?? String)(text));
        // Not valid UTF-8.
        const bytes = Buffer.concat([noise, written, noise]);
        const cut = Math.floor(share * bytes.length);
        const secret = key.length === 64 ? `sbk_${key}` : key;
        expectNothingOf(secret, bodyOf(bytes).body);
        expectNothingOf(secret, bodyOf(bytes.subarray(0, cut), bytes.length).body);
        const { client_signal_id } = bodyOf(Buffer.from(`{"client_signal_id":"${text}"}`));
        expectNothingOf(secret, client_signal_id ?? "");
      },
    ),
    { numRuns: 2_000 },
  );
});

test("a key in UTF-16, and one with a typing error, are not kept", () => {
  expect(bodyOf(Buffer.from(`{"a":"${KEY}"}`, "utf16le")).body).toBe('{"a":"sbk_…"}');
  expect(keep(`{"a":"sbk_OO12-xyz."}`)).toBe('{"a":"sbk_…"}');
});

describe("what looks like a secret is taken out, and the rest stays:", () => {
  test.each([
    [`{"Authorization":"Bearer x","side":"up"}`, `{"Authorization":"…","side":"up"}`],
    [`{"x-api-key" : "s p a c e","side":"up"}`, `{"x-api-key" : "…","side":"up"}`],
    [`{"\\u0061piKey":"x\\"y","side":"up"}`, `{"apiKey":"…","side":"up"}`],
    [`{"credentials":{"user":["a","}"]},"side":"up"}`, `{"credentials":"…","side":"up"}`],
    [`{"password":12345,"side":"up"}`, `{"password":…,"side":"up"}`],
    [`{"note":"{\\"token\\":\\"a b\\",\\"n\\":1}"}`, `{"note":"{\\"token\\":…,\\"n\\":1}"}`],
    [`{'secret': 'a b', 'side': 'up'}`, `{'secret': …, 'side': 'up'}`],
    [`api_key=abc&side=open`, `api_key=…&side=open`],
    [`{"note":"curl -H 'X: Bearer abcdef'"}`, `{"note":"curl -H 'X: Bearer …'"}`],
    [`{"hash":"${"0a".repeat(20)}"}`, `{"hash":"…0a0a"}`],
    [`"password": "never ends`, `"password": "…"`],
  ])("%s", (body, kept) => expect(keep(body)).toBe(kept));
});

test.each([
  `{"source":"venue_1","type":"crypto","symbol":"BTC/USDT","side":"up","price":64000.123456789}`,
  `{"client_signal_id":"01a0c450-6c00-7c3e-9d57-0e4f2b1c7a11","signal_time":1790000000000}`,
  `{"client_signal_id":"strategy-BTCUSDT-20261124T100000-0001"}`,
  `{"id":"01M83T4CM0QZ7V3K9X2M5T8R32","note":"Биржа — 取引所"}`,
  `{\n  "metadata": {"take_profit": 66000, "long": "a sentence of more than thirty-two characters"}\n}`,
])("an ordinary body is kept as it was sent: %s", (body) => expect(keep(body)).toBe(body));

test("a character that was cut is left out, bytes that are no UTF-8 are replaced, control characters stay escaped", () => {
  const whole = Buffer.from(`{"symbol":"€ `);
  expect(bodyOf(whole.subarray(0, 13), 20).body).toBe(`{"symbol":"`);
  expect(bodyOf(Buffer.from([0x7b, 0xff, 0x7d])).body).toBe("{\ufffd}");
  expect(keep(`{"a":"\\u0000\\u001b[31m"}`)).toBe(`{"a":"\\u0000\\u001b[31m"}`);
  expect(keep(`{"a":"\\ud800"}`).isWellFormed()).toBe(true);
});

test("the client_signal_id is read from a body that is no JSON", () => {
  const { client_signal_id } = bodyOf(
    Buffer.from(`{"client_signal_id": "order \\"7\\"", side: up}`),
  );
  expect(client_signal_id).toBe('order "7"');
  expect(bodyOf(Buffer.from("{")).client_signal_id).toBeNull();
});

test("values that differ are cut and without keys", () => {
  const metadata = `{"a":"${"x ".repeat(SENT_BYTES_MAX)}"}`;
  const kept = keptValues({ price: 1.5, direction: null, symbol: `a ${KEY}`, metadata });
  expect(kept).toMatchObject({ price: 1.5, direction: null, symbol: "a sbk_…" });
  expect(kept.metadata?.length).toBeLessThanOrEqual(SENT_BYTES_MAX + 1);
  expect(kept.metadata).toEndWith("…");
});

test("the worst text takes milliseconds", () => {
  const worst = [
    "a1",
    "key:",
    '{"key":{',
    "\\u005c",
    "\\u0075",
    "\u200b",
    "\\",
    "sb",
    "s\u200b",
    "bearer ",
    "'",
    `${"secret".repeat(150)}${" ".repeat(1148)}`,
  ];
  for (const part of worst) {
    const text = part.repeat(Math.ceil(SENT_BYTES_MAX / part.length));
    const startedAt = performance.now();
    withoutSecrets(text, { isCut: true });
    // A hundred times what it takes.
    expect({ part, isFast: performance.now() - startedAt < 200 }).toEqual({ part, isFast: true });
  }
});
