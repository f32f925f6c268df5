/** Short texts that members write: a key's label, a passkey's name. */
import { UserError } from "../../lib/errors.ts";
import { HIDDEN_CHARACTER } from "../../lib/text/hidden.ts";
import { redactKeys } from "../key/key.ts";

export const NOTE_CHARACTERS_MAX = 100;

/** Throws {@link UserError}. */
export function checkLabel(label: string): string {
  return checkNote(label, { what: "A label", example: "bot 7" });
}

/** Throws {@link UserError}. */
export function checkPasskeyName(name: string): string {
  return checkNote(name, { what: "A passkey's name", example: "Laptop" });
}

/** Throws {@link UserError}. */
export function refuseKeys(text: string, what: string): void {
  if (redactKeys(text) === text) return;
  throw new UserError(
    `${what} must not contain an API key, because lists and the audit show it: use another text.`,
  );
}

/** Returns the text as typed, not trimmed. */
function checkNote(text: string, { what, example }: { what: string; example: string }): string {
  const length = Array.from(text).length;
  if (length > NOTE_CHARACTERS_MAX || /^\p{Zs}*$/u.test(text)) {
    throw new UserError(
      `${what} has 1 to ${NOTE_CHARACTERS_MAX} characters and not only spaces, such as "${example}".`,
    );
  }
  if (HIDDEN_CHARACTER.test(text)) {
    throw new UserError(
      `${what} has no control characters and none that are invisible or change the direction of the text: type it by hand, such as "${example}".`,
    );
  }
  refuseKeys(text, what);
  return text;
}
