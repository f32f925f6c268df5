/** Labels, passkey names and addresses show what they are: no character that hides or reorders text. */
import { describe, expect, test } from "bun:test";
import { UserError } from "../../src/lib/errors.ts";
import { generateKey } from "../../src/domain/key/key.ts";
import { checkEmail } from "../../src/domain/member/member.ts";
import { checkLabel, checkPasskeyName } from "../../src/domain/desk/note.ts";

const hidden = {
  "right-to-left override": "\u202e",
  "left-to-right isolate": "\u2066",
  "right-to-left mark": "\u200f",
  "Arabic letter mark": "\u061c",
  "zero-width space": "\u200b",
  "zero-width joiner": "\u200d",
  "word joiner": "\u2060",
  "byte order mark": "\ufeff",
  "soft hyphen": "\u00ad",
  "combining grapheme joiner": "\u034f",
  "Hangul filler": "\u3164",
  "variation selector": "\ufe0f",
  "tag character": "\u{e0041}",
  "control character": "\u0007",
  "line separator": "\u2028",
  "paragraph separator": "\u2029",
};

describe.each(Object.entries(hidden))("a %s", (_, character) => {
  test.each([
    ["label", checkLabel, `bot${character}7`],
    ["passkey's name", checkPasskeyName, `lap${character}top`],
    ["email address", checkEmail, `al${character}ice@example.com`],
  ])("is refused in a %s", (_what, check, text) => {
    expect(() => check(text)).toThrow(UserError);
    expect(() => check(text)).toThrow(/invisible|no spaces/);
  });
});

test.each(["bot 7", "Büro 机器人 ボット", "בוט", "a\u0301", "🤖"])(
  "the label %s is taken",
  (label) => {
    expect(checkLabel(label)).toBe(label);
    expect(checkPasskeyName(label)).toBe(label);
  },
);

test.each([" ", "   ", "\u00a0", "\u3000 \u2003"])("spaces alone (%j) are no label", (text) => {
  expect(() => checkLabel(text)).toThrow("1 to 100 characters");
  expect(() => checkPasskeyName(text)).toThrow("1 to 100 characters");
});

test.each(["send", "read"] as const)(
  "no text keeps a %s key, which lists and the audit would show",
  (scope) => {
    const key = generateKey(scope);
    for (const text of [key, `bot 7: ${key}`, key.toUpperCase()]) {
      for (const check of [checkLabel, checkPasskeyName]) {
        expect(() => check(text)).toThrow("must not contain an API key");
        expect(() => check(text)).not.toThrow(key);
      }
    }
    expect(() => checkEmail(`${key}@example.com`)).toThrow("must not contain an API key");
    expect(checkLabel("the sbk_ key of bot 7")).toBe("the sbk_ key of bot 7");
  },
);
