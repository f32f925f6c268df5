/** Asks members to confirm with their password or a passkey: a stolen session is not enough to change who gets in. */
import { UserError } from "../../../lib/errors.ts";
import { auditFailure, checkPassword } from "../sign-in/credentials.ts";
import type { ConsoleServices } from "../../server/services.ts";
import { type MemberVisit, RESPONSE_FIELD } from "../../server/visit.ts";
import type { Ways } from "../../ui/forms.tsx";

export async function waysOf(
  { ceremonies, members, passkeys }: ConsoleServices,
  { member: { memberId } }: MemberVisit,
): Promise<Ways> {
  return {
    hasPassword: (await members.find(memberId))?.has_password === true,
    hasPasskey: ceremonies.isPossible && (await passkeys.list(memberId)).length > 0,
  };
}

/**
 * Checks the passkey's answer if the form has one, else the current password. Throws a `UserError`, or
 * `rate_limited` after too many attempts.
 */
export function requireConfirmation(services: ConsoleServices, visit: MemberVisit): Promise<void> {
  const hasAnswer = (visit.form.get(RESPONSE_FIELD) ?? "") !== "";
  return hasAnswer ? requirePasskey(services, visit) : requirePassword(services, visit);
}

async function requirePassword(services: ConsoleServices, visit: MemberVisit): Promise<void> {
  if (!(await waysOf(services, visit)).hasPassword) {
    throw new UserError("You have no password: confirm with a passkey. Nothing was changed.");
  }
  const { email, memberId } = visit.member;
  const password = visit.form.get("current") ?? "";
  const failure = failureOf(memberId, "typed a wrong password");
  if ((await checkPassword(services, visit, { email, password, failure })) !== null) return;
  throw new UserError("Wrong password. Nothing was changed.");
}

/** Accepts any passkey of the member. */
async function requirePasskey(services: ConsoleServices, visit: MemberVisit): Promise<void> {
  const result = await services.ceremonies.finishProving(visit, "confirm");
  const { memberId, deskId } = visit.member;
  if (result.outcome === "right" && result.account.id === memberId) return;
  if (result.outcome === "refused") {
    const failure = failureOf(memberId, `came ${result.reason}`);
    await auditFailure(services, visit, { id: memberId, desk_id: deskId }, failure);
  }
  throw new UserError(
    "That is not one of your passkeys, or it took too long. Nothing was changed. Try again.",
  );
}

function failureOf(actor: string, detail: string) {
  return { actor, action: "member.confirmation_failed", detail } as const;
}
