/** Short texts that members write for each other: a key's label, a passkey's name. */
import { UserError } from "./errors.ts";

export const NOTE_CHARACTERS_MAX = 100;

/**
 * Controls, characters that change the direction of the text around them, and those that take no
 * space: with them one text can look like another.
 */
export const HIDDEN_CHARACTER = /[\p{Cc}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/u;

/** Trims nothing: what is shown later is what was typed. Throws {@link UserError}. */
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
