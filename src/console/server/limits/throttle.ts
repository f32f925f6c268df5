/**
 * Slows password guessing without locking members out, with device cookies
 * (owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies).
 *
 * A browser that has signed in as the member before has its own count of failures. All other browsers
 * share one count per typed address, known or not, and one per network, against trying one password on
 * many members. So strangers can lock out other strangers, but never a known browser.
 *
 * Successful sign-ins are limited per member and per passkey, because each writes to the database.
 *
 * The counts are in memory. The secret that signs the cookies survives a restart
 * (`store/records/sessions.ts`).
 */
import { isIP } from "node:net";
import { generateToken, normalizeEmail } from "../../../domain/member/member.ts";
import { equals } from "../csrf.ts";
import { ExpiringMap } from "./expiring-map.ts";
import { MINUTE_MS } from "../../../lib/text/time.ts";

/** A count ends this long after its first failure. */
export const THROTTLE_WINDOW_MS = 15 * MINUTE_MS;
/** Per known browser, and per typed address for all others. */
export const FAILURES_MAX = 10;
/** Per member with a password, and per passkey. */
export const SIGN_INS_MAX = 30;
/** Higher, because an office may share one address. */
export const NETWORK_FAILURES_MAX = 50;
/** Per kind. To push one count out of a full map takes far more failures than that count holds. */
const COUNTS_MAX = 50_000;
const NONCE_CHARACTERS = 43;

export interface Guess {
  /** As typed. */
  readonly email: string;
  /** The value of the device cookie. */
  readonly device: string | null;
  /** The client's IP address. */
  readonly address: string;
}

/** `retryAt`: epoch milliseconds; the attempt must not be made before. */
export type Attempt =
  | {
      readonly isAllowed: false;
      readonly retryAt: number;
      /** The limit on sign-ins is reached, not the one on failures. */
      readonly isSignIns: boolean;
    }
  | {
      readonly isAllowed: true;
      readonly isKnownDevice: boolean;
      /** Counts the attempt as a sign-in instead of a failure. */
      readonly succeeded: () => void;
      /** The attempt was not made. */
      readonly takeBack: () => void;
    };

export class SignInThrottle {
  readonly #clock: () => number;
  readonly #secret: Uint8Array;
  readonly #devices = new Counts(FAILURES_MAX);
  readonly #strangers = new Counts(FAILURES_MAX);
  readonly #networks = new Counts(NETWORK_FAILURES_MAX);
  readonly #signIns = new Counts(SIGN_INS_MAX);

  /** `secret` signs the device cookies. */
  constructor(secret: Uint8Array, clock: () => number = Date.now) {
    this.#secret = secret;
    this.#clock = clock;
  }

  /**
   * Call it before the password is checked: the attempt counts as a failure until `succeeded` is called,
   * so that attempts at the same moment count like attempts one after another.
   */
  begin({ email, device, address }: Guess): Attempt {
    const now = this.#clock();
    // Capitals and spaces do not evade the limit.
    const member = normalizeEmail(email);
    const nonce = this.#nonceOf(member, device);
    const name = digest(member);
    const counted: [Counts, string][] =
      nonce === null
        ? [
            [this.#strangers, name],
            [this.#networks, networkOf(address)],
          ]
        : [[this.#devices, nonce]];
    const failing = counted.map(([counts, key]) => counts.limitedUntil(key, now));
    const signingIn = this.#signIns.limitedUntil(name, now);
    const retryAt = Math.max(...failing, signingIn);
    if (retryAt > now) return { isAllowed: false, retryAt, isSignIns: retryAt === signingIn };
    for (const [counts, key] of counted) counts.add(key, now);
    const takeBack = (): void => {
      for (const [counts, key] of counted) counts.takeBack(key, now);
    };
    return {
      isAllowed: true,
      isKnownDevice: nonce !== null,
      succeeded: () => {
        takeBack();
        this.#signIns.add(name, now);
      },
      takeBack,
    };
  }

  /** Call it after the signature is checked. Counts the sign-in, or returns when to try again. */
  beginPasskeySession(passkeyId: string): number {
    const now = this.#clock();
    const name = digest(passkeyId);
    const retryAt = this.#signIns.limitedUntil(name, now);
    if (retryAt <= now) this.#signIns.add(name, now);
    return retryAt;
  }

  /** The value of the cookie for a browser that has just signed in. */
  rememberDevice(email: string): string {
    const nonce = generateToken();
    return nonce + this.#sign(normalizeEmail(email), nonce);
  }

  /** Null for a browser that is unknown, or known for somebody else. */
  #nonceOf(member: string, device: string | null): string | null {
    const nonce = device?.slice(0, NONCE_CHARACTERS) ?? "";
    const signature = device?.slice(NONCE_CHARACTERS) ?? "";
    return equals(signature, this.#sign(member, nonce)) ? nonce : null;
  }

  /** The nonce has a fixed length, so nonce and address cannot be split differently. */
  #sign(member: string, nonce: string): string {
    return new Bun.CryptoHasher("sha256", this.#secret).update(nonce + member).digest("base64url");
  }
}

class Counts {
  readonly #max: number;
  readonly #counts = new ExpiringMap<{ times: number }>(THROTTLE_WINDOW_MS, COUNTS_MAX);

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns 0 below the limit. */
  limitedUntil(name: string, now: number): number {
    const times = this.#counts.get(name, now)?.times ?? 0;
    return times < this.#max ? 0 : this.#counts.endOf(name, now);
  }

  add(name: string, now: number): void {
    const count = this.#counts.get(name, now);
    if (count === null) this.#counts.set(name, { times: 1 }, now);
    else count.times += 1;
  }

  takeBack(name: string, now: number): void {
    const count = this.#counts.get(name, now);
    if (count === null) return;
    count.times -= 1;
    if (count.times === 0) this.#counts.delete(name);
  }
}

/** The typed text may be long, and may be a password typed into the wrong field. */
function digest(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("base64url");
}

/** Returns the /64 of an IPv6 address: one customer has all of its addresses. */
function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = "", tail = ""] = (address.split("%")[0] ?? "").split("::");
  const [left = [], right = []] = [head, tail].map((part) => (part === "" ? [] : part.split(":")));
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => "0");
  return [...left, ...zeros, ...right]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
