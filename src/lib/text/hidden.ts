/**
 * Characters that are invisible or change the direction of text: with them, one text looks like another.
 * Bots may send them, so whatever people read shows them as what they are. Programs get them as sent.
 */

/** Control, separating, bidirectional and invisible characters, and those that annotate. */
export const HIDDEN_CHARACTER =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]/u;

const each = new RegExp(HIDDEN_CHARACTER, "gu");
/** Tabs and line breaks format a text that people read. */
const eachButBreaks = new RegExp(`(?![\\t\\r\\n])${HIDDEN_CHARACTER.source}`, "gu");

const hex = (code: number, digits = 4) => code.toString(16).padStart(digits, "0");

/** Such as `⟨U+202E⟩`. */
export function markOf(character: string): string {
  return `⟨U+${hex(character.codePointAt(0) ?? 0).toUpperCase()}⟩`;
}

/** Puts a mark in the place of each hidden character. */
export function showHidden(text: string): string {
  return text.replaceAll(each, markOf);
}

/** Takes JSON. Escapes what is hidden in its strings, which means the same to programs. */
export function escapeHidden(json: string): string {
  return json.replaceAll(eachButBreaks, (character) =>
    character
      .split("")
      .map((unit) => `\\u${hex(unit.charCodeAt(0))}`)
      .join(""),
  );
}

/** Splits a text at its hidden characters: those have odd indexes. */
export function splitAtHidden(text: string): readonly string[] {
  return text.split(new RegExp(`(${eachButBreaks.source})`, "u"));
}
