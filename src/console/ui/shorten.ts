/** Texts of bots and people in lists, where each has only so much room. */

const CHARACTERS_MAX = 60;

/**
 * At most so many characters, the last an ellipsis where there were more. Characters are code points: of
 * what a reader takes for one, any number may make one up.
 */
export function shorten(text: string): string {
  // No text has more characters than it has units.
  if (text.length <= CHARACTERS_MAX) return text;
  const characters = Array.from(text);
  if (characters.length <= CHARACTERS_MAX) return text;
  return `${characters.slice(0, CHARACTERS_MAX - 1).join("")}…`;
}
