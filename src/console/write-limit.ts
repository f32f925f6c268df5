/** Limits how often members change something: each change takes the database's lock, which signals need. */
import { RateLimiter } from "../net/rate.ts";
import type { SignedIn } from "./visit.ts";

/** More than anybody sends by hand. */
export const MEMBER_WRITES_PER_MINUTE = 30;
/** One member alone cannot use up what the others need. */
export const DESK_WRITES_PER_MINUTE = 120;

export class WriteLimit {
  readonly #members = new RateLimiter<string>(
    MEMBER_WRITES_PER_MINUTE / 60,
    MEMBER_WRITES_PER_MINUTE,
  );
  readonly #desks = new RateLimiter(DESK_WRITES_PER_MINUTE / 60, DESK_WRITES_PER_MINUTE);

  /** Throws `rate_limited`. `now` in milliseconds, of a clock that never steps back. */
  take({ memberId, deskId }: Pick<SignedIn, "memberId" | "deskId">, now: number): void {
    this.#members.take(memberId, now);
    this.#desks.take(deskId, now);
  }
}
