/** The open challenges to passkeys. */
import { generateToken } from "../../domain/member.ts";
import { MINUTE_MS } from "../../domain/time.ts";
import { ExpiringMap } from "../web/expiring-map.ts";

export const CHALLENGE_LIFETIME_MS = 5 * MINUTE_MS;
/** Beyond it the oldest are forgotten. */
const CHALLENGES_MAX = 50_000;

export type Purpose = "sign-in" | "add" | "join" | "confirm";

/** Each is for one browser and one purpose, once, and not for long. */
export class Challenges {
  readonly #open = new ExpiringMap<string>(CHALLENGE_LIFETIME_MS, CHALLENGES_MAX);

  /** `browser`: a text that only this browser's cookie gives. Replaces its earlier challenge. */
  issue(purpose: Purpose, browser: string, now: number): string {
    const challenge = generateToken();
    this.#open.set(`${purpose} ${browser}`, challenge, now);
    return challenge;
  }

  /** Returns null for a challenge that is unknown, was taken, or is too old. */
  take(purpose: Purpose, browser: string, now: number): string | null {
    return this.#open.take(`${purpose} ${browser}`, now);
  }
}
