/** Checks what somebody types as a password. */
import type { AuditEntry } from "../../../domain/audit/audit.ts";
import { AppError } from "../../../domain/errors.ts";
import { UserError } from "../../../lib/errors.ts";
import type { SignInAccount } from "../../../domain/member/member.ts";
import { hashPassword, verifyPassword } from "../../../domain/member/password.ts";
import { type PasswordOwner, passwordProblem } from "./password.ts";
import type { ConsoleServices } from "../../server/services.ts";
import { cookieNames, type Visit } from "../../server/visit.ts";

/** Failures are answered after this time, with an entry in the audit or without. */
const FAILURE_MS_MIN = 400;
/** When a stranger may try again because too many passwords wait to be hashed. */
const BUSY_RETRY_MS = 10_000;

/** Hashing a password takes all of a core for a moment, and the signals need the cores, too. */
export class ConcurrencyLimit {
  readonly #waiting: (() => void)[] = [];
  readonly #waitingMax: number;
  #free: number;

  constructor({ atOnce, waitingMax }: { atOnce: number; waitingMax: number }) {
    this.#free = atOnce;
    this.#waitingMax = waitingMax;
  }

  /** Whether so many wait that strangers must come again later. */
  get isFull(): boolean {
    return this.#waiting.length >= this.#waitingMax;
  }

  /** First come, first served. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

/** Two, so that one slow core does not hold up everybody. */
const limit = new ConcurrencyLimit({ atOnce: 2, waitingMax: 50 });

/** What the audit says of a failed attempt. */
export type Failure = Pick<AuditEntry, "actor" | "action" | "detail">;

/**
 * Returns null for a wrong password and, after the same time, for an unknown address. Throws
 * {@link tooMany}, and {@link deskArchived} after the right password. `failure`: for the audit.
 */
export async function checkPassword(
  services: ConsoleServices,
  visit: Visit,
  { email, password, failure }: { email: string; password: string; failure: Failure },
): Promise<SignInAccount | null> {
  const startedAt = performance.now();
  const device = visit.cookies.get(cookieNames.device);
  const attempt = await services.throttle.begin({ email, device, address: visit.address });
  if (!attempt.isAllowed) {
    const { retryAt, isSignIns } = attempt;
    throw tooMany(isSignIns ? "sign-ins" : "failed attempts", services, visit, retryAt);
  }
  const account = await services.members.findForSignIn(email);
  // Nothing is awaited from here to the `take`, so that no other attempt takes the place.
  if (limit.isFull && !attempt.isKnownDevice) {
    await attempt.takeBack();
    throw tooMany("attempts at once", services, visit, visit.now + BUSY_RETRY_MS);
  }
  const isRight = await limit.take(() => verifyPassword(password, account?.password_hash ?? null));
  if (account !== null && isRight && (await isStill(services, account))) {
    await attempt.succeeded();
    if (account.desk_archived_at !== null) {
      throw await deskArchived(services, visit, account, {
        ...failure,
        detail: "with the right password",
      });
    }
    return account;
  }
  services.failedSignIns.count(
    account === null ? "unknown_address" : "wrong_password",
    visit.address,
  );
  if (account !== null) await auditFailure(services, visit, account, failure);
  await Bun.sleep(Math.max(0, FAILURE_MS_MIN - (performance.now() - startedAt)));
  return null;
}

/** Counts an attempt that is refused unseen. `retryAt`: epoch milliseconds. */
export function tooMany(
  what: "sign-ins" | "failed attempts" | "attempts at once",
  { failedSignIns }: ConsoleServices,
  { address, now }: Visit,
  retryAt: number,
): AppError {
  failedSignIns.count("throttled", address);
  const retryAfterS = Math.max(1, Math.ceil((retryAt - now) / 1_000));
  const others = "Other people's do not block browsers in which you signed in recently.";
  const message = `Too many ${what}.${what === "failed attempts" ? ` ${others}` : ""}`;
  return new AppError("rate_limited", { retryAfterS, message });
}

/**
 * Records the attempt, and returns the answer to it. Only for somebody who proved to be a member: strangers
 * must not learn that the desk is archived.
 */
export async function deskArchived(
  services: ConsoleServices,
  visit: Visit,
  member: { id: string; desk_id: number },
  { actor, action, detail }: Failure,
): Promise<UserError> {
  services.failedSignIns.count("archived_desk", visit.address);
  const failure = { actor, action, detail: `${detail}, but the desk is archived` };
  await auditFailure(services, visit, member, failure);
  return new UserError("Your desk is archived: ask your administrator.");
}

/** Throws a `UserError` for a password that the member may not choose. */
export async function hashNewPassword(
  { members }: ConsoleServices,
  member: PasswordOwner & { readonly id: string },
  password: string,
): Promise<string> {
  const problem = await passwordProblem(password, member);
  if (problem !== null) throw new UserError(problem);
  const old = await members.passwordHash(member.id);
  const isOld = old !== null && (await limit.take(() => verifyPassword(password, old)));
  if (isOld) throw new UserError("That is your old password. Choose a different one.");
  return limit.take(() => hashPassword(password));
}

/** Only logs a failure of the audit: the answer must be the same as for an unknown address. */
export async function auditFailure(
  { audit, log }: ConsoleServices,
  { address }: Visit,
  { id, desk_id }: { id: string; desk_id: number },
  failure: Failure,
): Promise<void> {
  try {
    await audit.append({ deskId: desk_id, subjectId: id, client: address, ...failure });
  } catch (error) {
    log.error({ err: error, client: address }, "a failed attempt is not in the audit");
  }
}

/** While the password was checked, a link may have set another one, or the desk may have been archived. */
async function isStill(
  { members }: ConsoleServices,
  { email, password_hash, desk_archived_at }: SignInAccount,
): Promise<boolean> {
  const now = await members.findForSignIn(email);
  return now?.password_hash === password_hash && now.desk_archived_at === desk_archived_at;
}
