/** The first password or passkey: `/join/…` by a one-time link, `/passkey` at a desk that requires passkeys. */
import { UserError } from "../../domain/errors.ts";
import { page, seeOther } from "../web/responses.ts";
import { type Answer, forEverybody, forSignedIn, type Route } from "../web/routes.ts";
import type { ConsoleServices } from "../web/services.ts";
import { authorOf, type MemberVisit, requireSession, type Visit } from "../web/visit.ts";
import { admit, startSession } from "./admission.ts";
import { hashNewPassword } from "./credentials.ts";
import { JoinPage, RequiredPasskeyPage } from "./joining.tsx";
import { LinkGonePage } from "./page.tsx";

/** Its owner can tell it from others in the list once there are others. */
const FIRST_PASSKEY_NAME = "First passkey";
const BY_LINK = "with a one-time link";

/** Only a form spends a link: programs that look at links in messages use GET. */
export const joinRoutes: readonly Route[] = [
  forEverybody.page("/join/:token", showJoin),
  forEverybody.form("/join/:token", joinWithPassword, { again: showJoin }),
  forEverybody.passkey("/join/:token/passkey/options", joinOptions),
  forEverybody.form("/join/:token/passkey", joinWithPasskey, { again: showJoin }),
  forSignedIn.page("/passkey", showRequired),
  forSignedIn.form("/passkey", addRequired, { again: showRequired }),
  forSignedIn.passkey("/passkey/options", requiredOptions, "/passkey"),
];

async function showJoin(
  { ceremonies, members }: ConsoleServices,
  visit: Visit,
  problem: string | null,
): Promise<Answer> {
  const token = tokenOf(visit);
  const invitation = await members.findInvitation(token);
  if (invitation === null) return gone();
  return (
    <JoinPage
      visit={visit}
      path={`/join/${token}`}
      kind={invitation.kind}
      member={invitation.member}
      needsPasskey={invitation.passkeys_required}
      problem={problem}
      hasPasskeys={ceremonies.isPossible}
    />
  );
}

async function joinWithPassword(services: ConsoleServices, visit: Visit): Promise<Response> {
  const { members } = services;
  const token = tokenOf(visit);
  const invitation = await members.findInvitation(token);
  if (invitation === null) return gone();
  if (invitation.passkeys_required) {
    throw new UserError("This desk requires a passkey: a password does not let you in.");
  }
  const password = visit.form.get("password") ?? "";
  const hash = await hashNewPassword(services, invitation.member, password);
  const account = await members.spendLink(token, { passwordHash: hash }, visit.address);
  if (account === null) return gone();
  await admit(services, visit, account, { how: BY_LINK, passkeyId: null });
  return seeOther("/");
}

async function joinOptions(
  { ceremonies, members }: ConsoleServices,
  visit: Visit,
): Promise<object> {
  const invitation = await members.findInvitation(tokenOf(visit));
  if (invitation === null || !ceremonies.isPossible) {
    throw new UserError("The link does not work any more: load the page again.");
  }
  return ceremonies.startAdding(visit, invitation.member, "join");
}

async function joinWithPasskey(services: ConsoleServices, visit: Visit): Promise<Response> {
  const { ceremonies, members } = services;
  const passkey = await ceremonies.finishAdding(visit, FIRST_PASSKEY_NAME, "join");
  const account = await members.spendLink(tokenOf(visit), { passkey }, visit.address);
  if (account === null) return gone();
  await admit(services, visit, account, { how: BY_LINK, passkeyId: passkey.id });
  return seeOther("/");
}

/** Other members may not come here: adding another passkey takes the current password. */
function showRequired(
  { ceremonies }: ConsoleServices,
  visit: MemberVisit,
  problem: string | null,
): Answer {
  if (!visit.member.mustAddPasskey) return seeOther("/");
  return (
    <RequiredPasskeyPage visit={visit} problem={problem} hasPasskeys={ceremonies.isPossible} />
  );
}

async function addRequired(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const { ceremonies, members, passkeys } = services;
  if (!visit.member.mustAddPasskey) return seeOther("/");
  const passkey = await ceremonies.finishAdding(visit, FIRST_PASSKEY_NAME, "join");
  await requireSession(services, visit);
  const account = await members.find(visit.member.memberId);
  if (account === null) return seeOther("/sign-in");
  await passkeys.add(authorOf(visit), passkey, { onlyIfFirst: true });
  await startSession(services, visit, account, passkey.id);
  return seeOther("/");
}

async function requiredOptions(
  { ceremonies }: ConsoleServices,
  visit: MemberVisit,
): Promise<object> {
  const { mustAddPasskey, memberId: id, email } = visit.member;
  if (!mustAddPasskey || !ceremonies.isPossible) {
    throw new UserError("The page is out of date: load it again.");
  }
  return ceremonies.startAdding(visit, { id, email }, "join");
}

function tokenOf({ params }: Visit): string {
  return params["token"] ?? "";
}

function gone(): Response {
  return page(<LinkGonePage />, 410);
}
