/** Texts in the commands that we print for pasting. */

/** One word of a POSIX shell, quoted only where it must be. */
export function shellQuoted(text: string): string {
  return /^[A-Za-z0-9_./:@%+,-]+$/.test(text)
    ? text
    : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
