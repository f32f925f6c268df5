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
 * The counts and the secret that signs the cookies are in the storage, so that all servers of one database count
 * together (`domain/storage/shared/attempts.ts`, `store/records/sessions.ts`).
 */
import { isIP } from "node:net";
import { generateToken, normalizeEmail } from "../../../domain/member/member.ts";
import { equals } from "../csrf.ts";
import type { Attempts } from "../../../domain/storage/shared/attempts.ts";
import { MINUTE_MS } from "../../../lib/text/time.ts";

/** A count ends this long after its first failure. */
export const THROTTLE_WINDOW_MS = 15 * MINUTE_MS;
/** Per known browser, and per typed address for all others. */
export const FAILURES_MAX = 10;
/** Per member with a password, and per passkey. */
export const SIGN_INS_MAX = 30;
/** Higher, because an office may share one address. */
export const NETWORK_FAILURES_MAX = 50;
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
      readonly succeeded: () => Promise<void>;
      /** The attempt was not made. */
      readonly takeBack: () => Promise<void>;
    };

/** One of the limits. */
interface Limit {
  readonly name: string;
  readonly max: number;
}

export class SignInThrottle {
  readonly #clock: () => number;
  readonly #secret: Uint8Array;
  readonly #attempts: Attempts;

  /** `secret` signs the device cookies. */
  constructor(secret: Uint8Array, attempts: Attempts, clock: () => number = Date.now) {
    this.#secret = secret;
    this.#attempts = attempts;
    this.#clock = clock;
  }

  /**
   * Call it before the password is checked: the attempt counts as a failure until `succeeded` is called,
   * so that attempts at the same moment count like attempts one after another.
   */
  async begin({ email, device, address }: Guess): Promise<Attempt> {
    // Capitals and spaces do not evade the limit.
    const member = normalizeEmail(email);
    const nonce = this.#nonceOf(member, device);
    const name = digest(member);
    const failures: readonly Limit[] =
      nonce === null
        ? [
            { name: `stranger ${name}`, max: FAILURES_MAX },
            { name: `network ${networkOf(address)}`, max: NETWORK_FAILURES_MAX },
          ]
        : [{ name: `device ${digest(nonce)}`, max: FAILURES_MAX }];
    const signIns = signInsOf(name);
    const [failing, signingIn] = await Promise.all([
      Promise.all(failures.map((limit) => this.#limitedFor(limit))),
      this.#limitedFor(signIns),
    ]);
    const waitMs = Math.max(...failing, signingIn);
    if (waitMs > 0) return this.#refuse(waitMs, waitMs === signingIn);
    const takeBack = async (): Promise<void> => {
      for (const limit of failures) await this.#attempts.takeBack(limit.name);
    };
    // Others may have counted theirs since.
    const overMs = await this.#countAll(failures);
    if (overMs > 0) {
      await takeBack();
      return this.#refuse(overMs, false);
    }
    return {
      isAllowed: true,
      isKnownDevice: nonce !== null,
      succeeded: async () => {
        await takeBack();
        await this.#attempts.add(signIns.name, THROTTLE_WINDOW_MS);
      },
      takeBack,
    };
  }

  /** Call it after the signature is checked. Counts the sign-in and returns 0, or returns when to try again. */
  async beginPasskeySession(passkeyId: string): Promise<number> {
    const signIns = signInsOf(digest(passkeyId));
    const waitMs = (await this.#limitedFor(signIns)) || (await this.#countAll([signIns]));
    return waitMs === 0 ? 0 : this.#clock() + waitMs;
  }

  #refuse(waitMs: number, isSignIns: boolean): Attempt {
    return { isAllowed: false, retryAt: this.#clock() + waitMs, isSignIns };
  }

  /** Returns 0 below the limit. */
  async #limitedFor({ name, max }: Limit): Promise<number> {
    const count = await this.#attempts.find(name);
    return count === null || count.times < max ? 0 : count.leftMs;
  }

  /** Returns 0 if none is beyond its limit now. */
  async #countAll(limits: readonly Limit[]): Promise<number> {
    let waitMs = 0;
    for (const { name, max } of limits) {
      const { times, leftMs } = await this.#attempts.add(name, THROTTLE_WINDOW_MS);
      if (times > max) waitMs = Math.max(waitMs, leftMs);
    }
    return waitMs;
  }

  /** Whether the browser has signed in as this member before. */
  isKnownDevice(email: string, device: string | null): boolean {
    return this.#nonceOf(normalizeEmail(email), device) !== null;
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

function signInsOf(digested: string): Limit {
  return { name: `sign-ins ${digested}`, max: SIGN_INS_MAX };
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
