/** The challenges of WebAuthn that are open: each for one browser and one purpose, once, and not for long. */
import { randomToken } from "../web/sessions.ts";

export const CHALLENGE_LIFETIME_MS = 5 * 60 * 1_000;
/** Beyond it the oldest are forgotten. */
const CHALLENGES_MAX = 50_000;

export type Purpose = "sign-in" | "add" | "join" | "confirm";

interface Challenge {
  readonly text: string;
  readonly madeAt: number;
}

export class Challenges {
  readonly #open = new Map<string, Challenge>();

  /** `browser`: what only this browser's cookie gives. An earlier challenge of its becomes void. */
  issue(purpose: Purpose, browser: string, now: number): string {
    const name = nameOf(purpose, browser);
    this.#open.delete(name);
    const [oldest] = this.#open.size >= CHALLENGES_MAX ? this.#open.keys() : [];
    if (oldest !== undefined) this.#open.delete(oldest);
    const text = randomToken();
    this.#open.set(name, { text, madeAt: now });
    return text;
  }

  /** Null where there is none (any more). */
  take(purpose: Purpose, browser: string, now: number): string | null {
    const name = nameOf(purpose, browser);
    const challenge = this.#open.get(name);
    this.#open.delete(name);
    if (challenge === undefined) return null;
    return Math.abs(now - challenge.madeAt) > CHALLENGE_LIFETIME_MS ? null : challenge.text;
  }
}

function nameOf(purpose: Purpose, browser: string): string {
  return `${purpose} ${browser}`;
}
