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
 * (`store/device-secret.ts`).
 */
import { isIP } from "node:net";
import { equals } from "./csrf.ts";
import { randomToken } from "./sessions.ts";

/** A count ends this long after its first failure. */
export const THROTTLE_WINDOW_MS = 15 * 60 * 1_000;
/** Per known browser, and per typed address for all others. */
export const FAILURES_MAX = 10;
/** Per member with a password, and per passkey. */
export const SIGN_INS_MAX = 30;
/** Higher, because an office may share one address. */
export const NETWORK_FAILURES_MAX = 50;
/** Per kind. Beyond it the oldest are forgotten; forcing that takes far more failures than it frees. */
const COUNTS_MAX = 50_000;
const NONCE_CHARACTERS = 43;

export interface Guess {
  /** As typed. */
  readonly email: string;
  /** The value of the device cookie. */
  readonly device: string | null;
  /** Of the client, an IP address. */
  readonly address: string;
}

/** `retryAt`: epoch milliseconds; the attempt must not be made before. */
export type Attempt =
  | { readonly isAllowed: false; readonly retryAt: number }
  | {
      readonly isAllowed: true;
      readonly isKnownDevice: boolean;
      /** It counts as a sign-in and not as a failure. */
      readonly succeeded: () => void;
      /** It was not made. */
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
    const member = memberOf(email);
    const nonce = this.#nonceOf(member, device);
    const name = digest(member);
    const counted: [Counts, string][] =
      nonce === null
        ? [
            [this.#strangers, name],
            [this.#networks, networkOf(address)],
          ]
        : [[this.#devices, nonce]];
    const limits = counted.map(([counts, key]) => counts.limitedUntil(key, now));
    const retryAt = Math.max(...limits, this.#signIns.limitedUntil(name, now));
    if (retryAt > now) return { isAllowed: false, retryAt };
    for (const [counts, key] of counted) counts.add(key, now);
    const takeBack = (): void => {
      for (const [counts, key] of counted) counts.takeBack(key);
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

  /** Call it once the signature was checked. Counts the sign-in, or returns when it may be tried again. */
  beginPasskeySession(passkeyId: string): number {
    const now = this.#clock();
    const name = digest(passkeyId);
    const retryAt = this.#signIns.limitedUntil(name, now);
    if (retryAt <= now) this.#signIns.add(name, now);
    return retryAt;
  }

  /** The value of the cookie for a browser that has just signed in. */
  rememberDevice(email: string): string {
    const nonce = randomToken();
    return nonce + this.#sign(memberOf(email), nonce);
  }

  /** Null for a browser that is unknown, or known for somebody else. */
  #nonceOf(member: string, device: string | null): string | null {
    const nonce = device?.slice(0, NONCE_CHARACTERS) ?? "";
    const signature = device?.slice(NONCE_CHARACTERS) ?? "";
    return equals(signature, this.#sign(member, nonce)) ? nonce : null;
  }

  /** The nonce has one length, so the two cannot be cut in another place. */
  #sign(member: string, nonce: string): string {
    return new Bun.CryptoHasher("sha256", this.#secret).update(nonce + member).digest("base64url");
  }
}

interface Count {
  times: number;
  /** Epoch milliseconds, of the first time. */
  readonly since: number;
}

class Counts {
  readonly #max: number;
  /** The one with the oldest first time comes first. */
  readonly #counts = new Map<string, Count>();

  constructor(max: number) {
    this.#max = max;
  }

  /** 0 where it is not limited. */
  limitedUntil(name: string, now: number): number {
    const count = this.#current(name, now);
    return count === null || count.times < this.#max ? 0 : count.since + THROTTLE_WINDOW_MS;
  }

  add(name: string, now: number): void {
    const count = this.#current(name, now);
    if (count !== null) count.times += 1;
    else {
      this.#makeRoom();
      this.#counts.set(name, { times: 1, since: now });
    }
  }

  takeBack(name: string): void {
    const count = this.#counts.get(name);
    if (count === undefined) return;
    count.times -= 1;
    if (count.times <= 0) this.#counts.delete(name);
  }

  /** A clock that steps back must not keep anybody out for longer. */
  #current(name: string, now: number): Count | null {
    const count = this.#counts.get(name);
    if (count === undefined) return null;
    if (now >= count.since && now < count.since + THROTTLE_WINDOW_MS) return count;
    this.#counts.delete(name);
    return null;
  }

  #makeRoom(): void {
    const [oldest] = this.#counts.size >= COUNTS_MAX ? this.#counts.keys() : [];
    if (oldest !== undefined) this.#counts.delete(oldest);
  }
}

/** As members are looked up: typing in capitals is no way around the count. */
function memberOf(email: string): string {
  return email.normalize("NFC").toLowerCase();
}

/** The typed text may be long, and may be a password typed into the wrong field. */
function digest(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("base64url");
}

/** Returns the /64 of an IPv6 address: one customer has all of its addresses. */
function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = "", tail] = (address.split("%")[0] ?? "").split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => "0");
  return [...left, ...zeros, ...right]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
