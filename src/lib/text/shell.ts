/** Shell commands to paste on a terminal. */

/** Returns one word of a POSIX shell, quoted only if necessary. */
export function shellQuoted(text: string): string {
  return /^[A-Za-z0-9_./:@%+,-]+$/.test(text)
    ? text
    : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** What recipes call the environment variable with the key. */
export const KEY_VARIABLE = "SIGNALBOX_KEY";

/**
 * Returns the command that stores a first signal. The space in front keeps the command out of the history
 * of most shells (`HISTCONTROL=ignorespace`).
 */
export function firstSignalCommand(
  publicUrl: string,
  key: string,
  clientSignalId: string,
  {
    source = "venue_2",
    type = "crypto",
  }: Partial<Record<"source" | "type", string | undefined>> = {},
): string {
  const signal = {
    source,
    type,
    symbol: "BTC/USDT",
    side: "open",
    client_signal_id: clientSignalId,
  };
  return ` ${sendCommand(publicUrl, key, JSON.stringify(signal))}`;
}

/**
 * Returns the command that sends a body. curl reads the key from stdin, because every user of the machine
 * can see a process's arguments. `key`: itself, or a variable such as `$SIGNALBOX_KEY`.
 */
export function sendCommand(publicUrl: string, key: string, body: string): string {
  return `curl -sS ${shellQuoted(`${publicUrl}/v1/signals`)} -H @- -H 'Content-Type: application/json' \\
  -d ${shellQuoted(body)} <<END
Authorization: Bearer ${key}
END`;
}
