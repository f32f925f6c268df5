/** Text that is safe to print on a terminal, and shell commands to paste there. */

/** Returns one word of a POSIX shell, quoted only if necessary. */
export function shellQuoted(text: string): string {
  return /^[A-Za-z0-9_./:@%+,-]+$/.test(text)
    ? text
    : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * Returns the command that stores a first signal. curl reads the key from stdin, because every user of
 * the machine can see a process's arguments. The space in front keeps the command out of the history of
 * most shells (`HISTCONTROL=ignorespace`).
 */
export function firstSignalCommand(publicUrl: string, key: string, clientSignalId: string): string {
  const signal = {
    source: "venue_2",
    type: "crypto",
    symbol: "BTC/USDT",
    side: "open",
    client_signal_id: clientSignalId,
  };
  return ` curl -sS ${shellQuoted(`${publicUrl}/v1/signals`)} -H @- -H 'Content-Type: application/json' \\
  -d ${shellQuoted(JSON.stringify(signal))} <<'END'
Authorization: Bearer ${key}
END`;
}

/** Escapes control characters: terminals obey them, and names in a restored database may contain them. */
export function escapeControls(text: string): string {
  return text.replaceAll(
    /\p{Cc}/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
