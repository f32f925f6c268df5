/**
 * Seals what a session will show once, such as a new key, with the session's token: the storage has only the token's
 * hash, so nobody but the browser can open it.
 */
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export function seal(session: string, value: unknown): string {
  const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  const cipher = createCipheriv(CIPHER, keyOf(session), nonce);
  const sealed = [cipher.update(JSON.stringify(value), "utf8"), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]).toString("base64url");
}

/** Throws unless it was sealed with this session. */
export function unseal(session: string, text: string): unknown {
  const bytes = Buffer.from(text, "base64url");
  const decipher = createDecipheriv(CIPHER, keyOf(session), bytes.subarray(0, NONCE_BYTES));
  const start = NONCE_BYTES + TAG_BYTES;
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, start));
  return JSON.parse(
    Buffer.concat([decipher.update(bytes.subarray(start)), decipher.final()]).toString("utf8"),
  );
}

function keyOf(session: string): Uint8Array {
  return createHmac("sha256", session).update("seal").digest();
}
