/** Names of the operating system's users. */
import { readFileSync } from "node:fs";

/**
 * Names the user who runs this program and, with sudo, who asked for it: `signalbox (sudo: alice)`. Bun's
 * `userInfo()` would return `$USER`, which anybody can set.
 */
export function osUser(): string | null {
  const uid = process.geteuid?.();
  if (uid === undefined) return null;
  const name = userName(uid) ?? `user ${uid}`;
  const { SUDO_USER: asker } = process.env;
  return asker === undefined || asker === "" || asker === name ? name : `${name} (sudo: ${asker})`;
}

/** Null for a user that /etc/passwd does not list. */
export function userName(uid: number): string | null {
  try {
    const lines = readFileSync("/etc/passwd", "utf8").split("\n");
    return (
      lines.map((line) => line.split(":")).find((fields) => fields[2] === String(uid))?.[0] ?? null
    );
  } catch {
    return null;
  }
}
