/** The first password or passkey: `/join/…` by a one-time link, `/passkey` at a desk that requires passkeys. */
import { UserError } from "../../domain/errors.ts";
import { orProblem, orRefusal } from "../web/refusals.ts";
import { page, seeOther } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import {
  authorOf,
  type MemberVisit,
  publicForm,
  publicPage,
  requireSession,
  type Route,
  signedInForm,
  signedInPage,
  type Visit,
} from "../web/visit.ts";
import { admit, startSession } from "./admission.ts";
import { hashNewPassword } from "./credentials.ts";
import { JoinPage, RequiredPasskeyPage } from "./joining.tsx";
import { LinkGonePage } from "./page.tsx";

/** Its owner can tell it from others in the list once there are others. */
const FIRST_PASSKEY_NAME = "First passkey";
const BY_LINK = "with a one-time link";

/** Only a form spends a link: programs that look at links in messages use GET. */
export function joinRoutes(services: ConsoleServices): Route[] {
  const { ceremonies, members } = services;
  return [
    publicPage("/join/:token", (visit) => showJoin(services, visit)),
    publicForm("/join/:token", (visit) => joinWithPassword(services, visit)),
    publicForm("/join/:token/passkey/options", (visit) =>
      orProblem(async () => {
        const invitation = await members.findInvitation(tokenOf(visit));
        if (invitation === null || !ceremonies.isPossible) {
          throw new UserError("The link does not work any more: load the page again.");
        }
        return ceremonies.startAdding(visit, invitation.member, "join");
      }),
    ),
    publicForm("/join/:token/passkey", (visit) => joinWithPasskey(services, visit)),
    signedInPage("/passkey", (visit) => showRequired(services, visit)),
    signedInForm("/passkey", (visit) => addRequired(services, visit)),
    signedInForm(
      "/passkey/options",
      (visit) =>
        orProblem(async () => {
          const { mustAddPasskey, memberId: id, email } = visit.member;
          if (!mustAddPasskey || !ceremonies.isPossible) {
            throw new UserError("The page is out of date: load it again.");
          }
          return ceremonies.startAdding(visit, { id, email }, "join");
        }),
      "/passkey",
    ),
  ];
}

async function showJoin(
  { ceremonies, members }: ConsoleServices,
  visit: Visit,
  problem: string | null = null,
): Promise<Response> {
  const token = tokenOf(visit);
  const invitation = await members.findInvitation(token);
  if (invitation === null) return gone();
  return page(
    <JoinPage
      visit={visit}
      path={`/join/${token}`}
      kind={invitation.kind}
      member={invitation.member}
      needsPasskey={invitation.passkeys_required}
      problem={problem}
      hasPasskeys={ceremonies.isPossible}
    />,
    problem === null ? 200 : 422,
  );
}

function joinWithPassword(services: ConsoleServices, visit: Visit): Promise<Response> {
  const { members } = services;
  const token = tokenOf(visit);
  return orRefusal(
    async () => {
      const invitation = await members.findInvitation(token);
      if (invitation === null) return gone();
      if (invitation.passkeys_required) {
        throw new UserError("This desk requires a passkey: a password does not let you in.");
      }
      const password = visit.form.get("password") ?? "";
      const hash = await hashNewPassword(services, invitation.member, password);
      const account = await members.spendWithPassword(token, hash, visit.address);
      if (account === null) return gone();
      await admit(services, visit, account, { how: BY_LINK, passkeyId: null });
      return seeOther("/");
    },
    (problem) => showJoin(services, visit, problem),
  );
}

function joinWithPasskey(services: ConsoleServices, visit: Visit): Promise<Response> {
  const { ceremonies, members } = services;
  return orRefusal(
    async () => {
      const passkey = await ceremonies.finishAdding(visit, FIRST_PASSKEY_NAME, "join");
      const account = await members.spendWithPasskey(tokenOf(visit), passkey, visit.address);
      if (account === null) return gone();
      await admit(services, visit, account, { how: BY_LINK, passkeyId: passkey.id });
      return seeOther("/");
    },
    (problem) => showJoin(services, visit, problem),
  );
}

/** Other members may not come here: adding another passkey takes the current password. */
function showRequired(
  { ceremonies }: ConsoleServices,
  visit: MemberVisit,
  problem: string | null = null,
): Response {
  if (!visit.member.mustAddPasskey) return seeOther("/");
  return page(
    <RequiredPasskeyPage visit={visit} problem={problem} hasPasskeys={ceremonies.isPossible} />,
    problem === null ? 200 : 422,
  );
}

async function addRequired(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const { ceremonies, members, passkeys } = services;
  if (!visit.member.mustAddPasskey) return seeOther("/");
  return orRefusal(
    async () => {
      const passkey = await ceremonies.finishAdding(visit, FIRST_PASSKEY_NAME, "join");
      await requireSession(services, visit);
      const account = await members.find(visit.member.memberId);
      if (account === null) return seeOther("/sign-in");
      await passkeys.add(authorOf(visit), passkey, { onlyIfFirst: true });
      await startSession(services, visit, account, passkey.id);
      return seeOther("/");
    },
    (problem) => showRequired(services, visit, problem),
  );
}

function tokenOf({ params }: Visit): string {
  return params["token"] ?? "";
}

function gone(): Response {
  return page(<LinkGonePage />, 410);
}
