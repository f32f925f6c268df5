/** The command that stores a first signal, for the one moment that a key can be put into it. */
import { shellQuoted } from "./shell.ts";

/**
 * The key goes to curl's stdin, because every user of the machine can read a process's arguments. The
 * space in front keeps the command out of the history of most shells (`HISTCONTROL=ignorespace`).
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
