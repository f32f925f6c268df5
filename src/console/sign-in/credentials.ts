/** Checks what somebody types as a password. */
import type { AuditEntry } from "../../domain/audit.ts";
import type { SignInAccount } from "../../domain/member.ts";
import { hashPassword, verifyPassword } from "../../domain/password.ts";
import { type PasswordOwner, passwordProblem } from "./password.ts";
import type { ConsoleServices } from "../web/services.ts";
import { ConcurrencyLimit } from "../web/concurrency-limit.ts";
import { cookieNames, type Visit } from "../web/visit.ts";

/** Some take longer than others: with an entry in the audit, or none. All that fail are answered after so long. */
const FAILURE_MS_MIN = 400;
/** When so many are at it that a stranger has to come again. */
const BUSY_RETRY_MS = 10_000;

/** One hashes, and one more, so that one slow core does not hold up all. */
const limit = new ConcurrencyLimit({ atOnce: 2, waitingMax: 50 });

/** What the audit says of a failed attempt. */
export type Failure = Pick<AuditEntry, "actor" | "action" | "detail">;

export type Checked =
  | { readonly outcome: "right"; readonly account: SignInAccount }
  | { readonly outcome: "wrong" }
  /** `retryAt`: epoch milliseconds. */
  | { readonly outcome: "limited"; readonly retryAt: number };

/**
 * The answer is the same, and takes as long, for an address that is nobody's. `failure`: for the audit.
 */
export async function checkPassword(
  services: ConsoleServices,
  visit: Visit,
  { email, password, failure }: { email: string; password: string; failure: Failure },
): Promise<Checked> {
  const startedAt = performance.now();
  const device = visit.cookies.get(cookieNames.device);
  const attempt = services.throttle.begin({ email, device, address: visit.address });
  const { failedSignIns } = services;
  if (!attempt.isAllowed) {
    failedSignIns.count("throttled", visit.address);
    return { outcome: "limited", retryAt: attempt.retryAt };
  }
  if (limit.areLong && !attempt.isKnownDevice) {
    attempt.takeBack();
    failedSignIns.count("throttled", visit.address);
    return { outcome: "limited", retryAt: visit.now + BUSY_RETRY_MS };
  }
  const account = await services.members.findForSignIn(email);
  const isRight = await limit.take(() => verifyPassword(password, account?.password_hash ?? null));
  if (account !== null && isRight && (await isStill(services, account))) {
    attempt.succeeded();
    return { outcome: "right", account };
  }
  failedSignIns.count(account === null ? "unknown_address" : "wrong_password", visit.address);
  if (account !== null) await auditFailure(services, visit, account, failure);
  await Bun.sleep(Math.max(0, FAILURE_MS_MIN - (performance.now() - startedAt)));
  return { outcome: "wrong" };
}

/** Why the member may not choose this password, in a sentence; else its hash, made in turn. */
export async function hashNewPassword(
  { members }: ConsoleServices,
  member: PasswordOwner & { readonly id: string },
  password: string,
): Promise<{ readonly problem: string } | { readonly hash: string }> {
  const problem = await passwordProblem(password, member);
  if (problem !== null) return { problem };
  const old = await members.passwordHash(member.id);
  const isOld = old !== null && (await limit.take(() => verifyPassword(password, old)));
  if (isOld) return { problem: "That is your old password. Choose a different one." };
  return { hash: await limit.take(() => hashPassword(password)) };
}

/** What is refused anyway is refused also where the audit cannot be written: an unknown address would be. */
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

/** While it was checked, a link may have been used that sets another one. */
async function isStill(
  { members }: ConsoleServices,
  { email, password_hash }: SignInAccount,
): Promise<boolean> {
  return (await members.findForSignIn(email))?.password_hash === password_hash;
}
