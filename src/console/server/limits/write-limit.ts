/** Limits how often members change something: each change takes the database's lock, which signals need. */
import { RateLimiter } from "../../../http/limits/rate.ts";
import type { SignedIn } from "../sessions/sessions.ts";

/** More than anybody sends by hand. */
export const MEMBER_WRITES_PER_MINUTE = 30;
/** One member alone cannot use up what the others need. */
export const DESK_WRITES_PER_MINUTE = 120;

/** Counted apart from other changes, because it makes an account safer. */
export const SIGN_OUTS_PER_MINUTE = 6;
const SIGN_OUT_EVERYWHERE = "/account/sign-out-everywhere";

/**
 * Always allowed, because they make an account safer. None can write without end: a key is revoked once,
 * a session ends once, and sign-ins are limited.
 */
const UNLIMITED_PATHS: ReadonlySet<string> = new Set([
  "/sign-out",
  "/account/sessions/:id/end",
  "/keys/:id/revoke",
]);

export class WriteLimit {
  readonly #members = new RateLimiter<string>(
    MEMBER_WRITES_PER_MINUTE / 60,
    MEMBER_WRITES_PER_MINUTE,
  );
  readonly #signOuts = new RateLimiter<string>(SIGN_OUTS_PER_MINUTE / 60, SIGN_OUTS_PER_MINUTE);
  readonly #desks = new RateLimiter(DESK_WRITES_PER_MINUTE / 60, DESK_WRITES_PER_MINUTE);

  /** Throws `rate_limited`. `path`: of the route. `now` in milliseconds, of a clock that never steps back. */
  take(
    { memberId, deskId }: Pick<SignedIn, "memberId" | "deskId">,
    path: string,
    now: number,
  ): void {
    if (UNLIMITED_PATHS.has(path)) return;
    if (path === SIGN_OUT_EVERYWHERE) return this.#signOuts.take(memberId, now);
    this.#members.take(memberId, now);
    this.#desks.take(deskId, now);
  }
}
