/** Holds a key to its networks and its rate, and says which signals it may send. */
import { AppError } from "../../domain/errors.ts";
import type { KeyLimits } from "../../domain/key/limits.ts";
import { Networks } from "../../domain/networks.ts";
import type { AllowedValues } from "../../domain/signal/signal.ts";
import { RateLimiter } from "./rate.ts";

/** Keys with the same limits share them. */
const KNOWN_MAX = 1_000;

export class KeyLimiter {
  readonly #known = new Map<string, LimitsAtWork>();
  /** By their rate, so that each limited key has a bucket. */
  readonly #rates = new Map<number, RateLimiter<string>>();

  /** `text`: as in a `KeyOwner`. Most keys have no limits, and cost nothing. */
  limitsOf(text: string | null): LimitsAtWork | null {
    if (text === null) return null;
    let limits = this.#known.get(text);
    if (limits === undefined) {
      if (this.#known.size === KNOWN_MAX) this.#known.clear();
      limits = new LimitsAtWork(JSON.parse(text) as KeyLimits);
      this.#known.set(text, limits);
    }
    return limits;
  }

  /** Throws `rate_limited`. `now`: see {@link RateLimiter.take}. */
  take({ rate }: LimitsAtWork, keyId: string, now: number): void {
    if (rate === null) return;
    let limiter = this.#rates.get(rate);
    if (limiter === undefined) {
      const message = `The key is limited to ${rate} per second; retry after the seconds in Retry-After.`;
      limiter = new RateLimiter(rate, undefined, message);
      this.#rates.set(rate, limiter);
    }
    limiter.take(keyId, now);
  }
}

class LimitsAtWork {
  readonly #networks: Networks | null;
  readonly allowed: AllowedValues;
  readonly rate: number | null;

  constructor({ networks, sources, types, rate }: KeyLimits) {
    this.#networks = networks && new Networks(networks);
    this.allowed = { source: sources, type: types };
    this.rate = rate;
  }

  /** Throws `unauthorized`, as for an unknown key: only the desk is told more. `client`: its address, if it is still there. */
  requireNetwork(client: string | undefined): void {
    if (this.#networks === null || this.#networks.includes(client ?? "")) return;
    const message = `It came from ${client ?? "a connection that has ended"}.`;
    throw new AppError("unauthorized", { untold: { code: "foreign_network", message } });
  }
}
