/** Names of the operating system's users. */
import { readFileSync } from "node:fs";

/** The login user id of a process that nobody logged in for. */
const NO_LOGIN = "4294967295";

/**
 * Names the user who runs this program and, with sudo, who asked for it: `signalbox (sudo: alice)`. Bun's
 * `userInfo()` would return `$USER`, which anybody can set.
 */
export function osUser(): string | null {
  const uid = process.geteuid?.();
  return uid === undefined
    ? null
    : describeUser(uid, readLoginUid(), process.env["SUDO_USER"] ?? null);
}

/** Only root is asked for `$SUDO_USER`: others could make it up. The kernel keeps the login's user. */
export function describeUser(
  uid: number,
  loginUid: number | null,
  sudoUser: string | null,
): string {
  const name = userName(uid) ?? `user ${uid}`;
  const believed = uid === 0 ? users().find(([known]) => known === sudoUser)?.[0] : undefined;
  const asker = loginUid === null ? believed : (userName(loginUid) ?? `user ${loginUid}`);
  return asker === undefined || asker === name ? name : `${name} (sudo: ${asker})`;
}

/** Null without a login, or without Linux's audit. */
function readLoginUid(): number | null {
  try {
    const uid = readFileSync("/proc/self/loginuid", "utf8").trim();
    return uid === NO_LOGIN ? null : Number(uid);
  } catch {
    return null;
  }
}

/** Null for a user that /etc/passwd does not list. */
export function userName(uid: number): string | null {
  return users().find((fields) => fields[2] === String(uid))?.[0] ?? null;
}

/** The lines of /etc/passwd. */
function users(): string[][] {
  try {
    const lines = readFileSync("/etc/passwd", "utf8").split("\n");
    return lines.filter((line) => line !== "").map((line) => line.split(":"));
  } catch {
    return [];
  }
}
