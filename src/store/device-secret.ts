/**
 * The secret that signs device cookies (`console/server/limits/throttle.ts`). It is a file of its own, so that no
 * backup has it: with it, anybody could forge device cookies.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import { messageOf } from "../lib/errors.ts";

export const DEVICE_SECRET_NAME = "device-secret";
const SECRET_BYTES = 32;

/**
 * Reads the secret, or makes one. If the file cannot be used, the secret lasts until the next restart, after
 * which known browsers are forgotten.
 */
export function loadDeviceSecret(dataDir: string, log: Logger): Uint8Array {
  const file = join(dataDir, DEVICE_SECRET_NAME);
  try {
    const kept = existsSync(file) ? readFileSync(file) : null;
    if (kept?.length === SECRET_BYTES) return kept;
    if (kept !== null) {
      log.warn(`${file} was damaged and is replaced: known browsers are forgotten`);
    }
    const fresh = makeSecret();
    rmSync(file, { force: true });
    writeFileSync(file, fresh, { mode: 0o600, flag: "wx", flush: true });
    return fresh;
  } catch (error) {
    log.warn(
      { reason: messageOf(error) },
      `${file} cannot be used: after a restart, wrong passwords from a stranger can lock members out for 15 minutes`,
    );
    return makeSecret();
  }
}

function makeSecret(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
}
