/**
 * The challenges of passkeys. Each is for one purpose and one browser, whose token only its cookie gives; once, and
 * not for long. The server signs them and keeps only those that were answered: any server of the database can check
 * an answer, and strangers who ask for challenges use up nothing.
 */
import { timingSafeEqual } from "node:crypto";
import type { Notes } from "../../../domain/storage/shared/notes.ts";
import { MINUTE_MS } from "../../../lib/text/time.ts";
import type { Visit } from "../../server/visit.ts";

export const CHALLENGE_LIFETIME_MS = 5 * MINUTE_MS;
const NONCE_BYTES = 16;
const TIME_BYTES = 8;
const SIGNED_BYTES = NONCE_BYTES + TIME_BYTES;

export type Purpose = "sign-in" | "add" | "join" | "confirm";

/** What an answer may be to. */
export interface Answered {
  /** `challenge`: base64url. */
  readonly isOurs: (challenge: string) => boolean;
  /** {@link isOurs} refused one that was ours, because it is too old. */
  readonly isLate: boolean;
  /** Whether nobody has used the challenge before. Call it once the rest of the answer is right. */
  readonly isFirst: () => Promise<boolean>;
}

export class Challenges {
  readonly #secret: Uint8Array;
  readonly #notes: Notes;

  constructor(secret: Uint8Array, notes: Notes) {
    this.#secret = secret;
    this.#notes = notes;
  }

  make(visit: Visit, purpose: Purpose): Uint8Array<ArrayBuffer> {
    const signed = Buffer.alloc(SIGNED_BYTES);
    crypto.getRandomValues(signed.subarray(0, NONCE_BYTES));
    signed.writeDoubleBE(visit.now, NONCE_BYTES);
    return new Uint8Array([...signed, ...this.#sign(signed, visit, purpose)]);
  }

  expect(visit: Visit, purpose: Purpose): Answered {
    let name: string | null = null;
    let isLate = false;
    const isOurs = (challenge: string): boolean => {
      const bytes = Buffer.from(challenge, "base64url");
      const signed = bytes.subarray(0, SIGNED_BYTES);
      const signature = this.#sign(signed, visit, purpose);
      const given = bytes.subarray(SIGNED_BYTES);
      if (given.length !== signature.length || !timingSafeEqual(given, signature)) return false;
      // Also one of the future, from before the clock was set back.
      isLate = Math.abs(visit.now - signed.readDoubleBE(NONCE_BYTES)) >= CHALLENGE_LIFETIME_MS;
      if (!isLate) name = `challenge ${signed.toString("base64url")}`;
      return !isLate;
    };
    return {
      isOurs,
      get isLate() {
        return isLate;
      },
      isFirst: async () => name !== null && this.#notes.add(name, "", 2 * CHALLENGE_LIFETIME_MS),
    };
  }

  #sign(signed: Uint8Array, { csrfToken }: Visit, purpose: Purpose): Uint8Array {
    return new Bun.CryptoHasher("sha256", this.#secret)
      .update(`challenge ${purpose} ${csrfToken} `)
      .update(signed)
      .digest();
  }
}
