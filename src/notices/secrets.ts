/** Encrypts what a place needs to be reached, with a key that is not in the database: backups do not have it. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { NoticePlace } from "../domain/notice/notice.ts";
import { systemCode, UserError } from "../lib/errors.ts";
import { partialPath, syncPath } from "../lib/files.ts";
import { isStoreUrl } from "../lib/place.ts";

export const KEY_VARIABLE = "SIGNALBOX_NOTIFY_KEY";
export const KEY_FILE = "notify.key";

/** What stays out of lists, logs and errors. */
export interface Secrets {
  readonly url: string;
  /** Of ntfy. */
  readonly token?: string;
  /** Of a webhook: `whsec_` and base64. */
  readonly secret?: string;
}

/** What was encrypted for a place cannot be moved to another one. */
type Owner = Pick<NoticePlace, "destination" | "shown">;

export interface SecretBox {
  /** Makes the key if there is none. Throws `UserError`. */
  seal(secrets: Secrets, owner: Owner): Uint8Array;
  /** Throws `UserError` if the key is missing, or another one. */
  open(sealed: Uint8Array, owner: Owner): Secrets;
}

const CIPHER = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** `where`: as `store/open.ts` takes it. The key is in the folder, or else in the environment. */
export function secretBoxOf(where: string): SecretBox {
  const path = isStoreUrl(where) ? null : join(where, KEY_FILE);
  const name = path ?? KEY_VARIABLE;
  return {
    seal(secrets, owner) {
      const iv = randomBytes(IV_BYTES);
      if (path !== null && !existsSync(path)) makeKeyFile(path);
      const cipher = createCipheriv(CIPHER, readKey(path), iv).setAAD(aadOf(owner));
      const text = [cipher.update(JSON.stringify(secrets), "utf8"), cipher.final()];
      return Buffer.concat([iv, ...text, cipher.getAuthTag()]);
    },

    open(sealed, owner) {
      const key = readKey(path);
      try {
        const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, IV_BYTES))
          .setAAD(aadOf(owner))
          .setAuthTag(sealed.subarray(-TAG_BYTES));
        const text = [decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()];
        return JSON.parse(Buffer.concat(text).toString("utf8")) as Secrets;
      } catch {
        throw new UserError(
          `its URL was encrypted with another key than that of ${name}: bring that key back, or remove the place and add it again`,
        );
      }
    },
  };
}

function aadOf({ destination, shown }: Owner): Buffer {
  return Buffer.from(`${destination} ${shown}`);
}

/** `path`: null for the environment. */
function readKey(path: string | null): Buffer {
  const text = path === null ? process.env[KEY_VARIABLE] : readKeyFile(path);
  if (text === undefined || text === "") {
    throw new UserError(
      `${KEY_VARIABLE} is not set, with which URLs and tokens are encrypted: make a key, with: openssl rand -hex 32, and set it for all servers and commands`,
    );
  }
  if (/^[0-9a-f]{64}$/i.test(text.trim())) return Buffer.from(text.trim(), "hex");
  throw new UserError(
    `${path ?? KEY_VARIABLE} is not a key of 64 hexadecimal digits: bring back the one that was there, or make one, with: openssl rand -hex 32`,
  );
}

function readKeyFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UserError(
      `the key of its URL is missing (${path}: ${systemCode(error)}): bring the file back from where it was made, or remove the place and add it again`,
    );
  }
}

/** Two commands at once get one key. */
function makeKeyFile(path: string): void {
  const partial = partialPath(path);
  try {
    writeFileSync(partial, `${randomBytes(32).toString("hex")}\n`, {
      flag: "wx",
      mode: 0o600,
      flush: true,
    });
    linkSync(partial, path);
    syncPath(dirname(path));
  } catch (error) {
    if (systemCode(error) === "EEXIST") return;
    throw new UserError(
      `${path} cannot be written (${systemCode(error)}), and nothing was changed: run signalbox as the user who owns the folder`,
    );
  } finally {
    rmSync(partial, { force: true });
  }
}
