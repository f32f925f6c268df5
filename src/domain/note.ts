/** Short texts that members write: a key's label, a passkey's name. */
import { UserError } from "./errors.ts";

export const NOTE_CHARACTERS_MAX = 100;

/** Control, bidirectional and invisible characters, which can make one text look like another. */
export const HIDDEN_CHARACTER = /[\p{Cc}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/u;

/** Returns the text as typed, not trimmed. Throws {@link UserError}. */
export function checkNote(
  text: string,
  { what, example }: { what: string; example: string },
): string {
  const length = Array.from(text).length;
  if (length < 1 || length > NOTE_CHARACTERS_MAX) {
    throw new UserError(
      `${what} has 1 to ${NOTE_CHARACTERS_MAX} characters, such as "${example}".`,
    );
  }
  if (HIDDEN_CHARACTER.test(text)) {
    throw new UserError(
      `${what} has no control characters and none that are invisible or change the direction of the text: type it by hand, such as "${example}".`,
    );
  }
  return text;
}
