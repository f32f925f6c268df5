/** `/account`: the password, passkeys and sessions of a member. */
import { UserError } from "../../domain/errors.ts";
import type { Account, Passkey } from "../../domain/member.ts";
import { checkPasskeyName } from "../../domain/note.ts";
import { startSession } from "../sign-in/admission.ts";
import { hashNewPassword } from "../sign-in/credentials.ts";
import { requirePasskeys } from "../sign-in/passkeys.ts";
import { notFoundPage } from "../web/problems.tsx";
import { orProblem, orRefusal } from "../web/refusals.ts";
import { page, seeOther } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import {
  authorOf,
  memberForm,
  memberPage,
  type MemberVisit,
  requireSession,
  type Route,
} from "../web/visit.ts";
import { CONFIRM_OPTIONS_PATH, requireConfirmation, waysOf } from "./confirmation.ts";
import { pathWithNotice } from "./notices.ts";
import { AccountPage } from "./page.tsx";
import { RemovePasskeyPage } from "./passkey-removal-page.tsx";

type Handler = (services: ConsoleServices, visit: MemberVisit) => Response | Promise<Response>;

export function accountRoutes(services: ConsoleServices): Route[] {
  const form = (path: string, handle: Handler) =>
    memberForm(path, (visit) => handle(services, visit), "/account");
  const removal = "/account/passkeys/:id/remove";
  return [
    memberPage("/account", (visit) => showAccount(services, visit)),
    form("/account/password", changePassword),
    form(CONFIRM_OPTIONS_PATH, confirmOptions),
    form("/account/passkeys/options", passkeyOptions),
    form("/account/passkeys", addPasskey),
    memberPage(removal, (visit) => showRemoval(services, visit)),
    memberForm(removal, (visit) => removePasskey(services, visit)),
    form("/account/sessions/:id/end", endSession),
    form("/account/sign-out-everywhere", signOutElsewhere),
  ];
}

async function showAccount(
  services: ConsoleServices,
  visit: MemberVisit,
  problem: string | null = null,
): Promise<Response> {
  const { ceremonies, members, passkeys, sessions } = services;
  const account = await members.find(visit.member.memberId);
  if (account === null) return seeOther("/sign-in");
  const state = {
    account,
    passkeys: await passkeys.list(account.id),
    sessions: await sessions.list(account.id, visit.now),
    ways: await waysOf(services, visit),
    canHavePasskeys: ceremonies.isPossible,
    problem,
  };
  return page(<AccountPage visit={visit} state={state} />, problem === null ? 200 : 422);
}

function changePassword(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const { members } = services;
  const { memberId: id, email, desk } = visit.member;
  return orRefusal(
    async () => {
      const { hasPassword } = await waysOf(services, visit);
      if ((await members.find(id))?.passkeys_required === true) {
        throw new UserError("Your desk requires passkeys: a password would not let you in.");
      }
      await requireConfirmation(services, visit);
      const password = visit.form.get("new") ?? "";
      const hash = await hashNewPassword(services, { id, email, desk }, password);
      await requireSession(services, visit);
      const account = await members.setPassword(authorOf(visit), hash);
      return startAgain(services, visit, account, hasPassword ? "password" : "password-set");
    },
    (problem) => showAccount(services, visit, problem),
  );
}

function confirmOptions({ ceremonies }: ConsoleServices, visit: MemberVisit): Promise<Response> {
  return orProblem(() => ceremonies.startProving(visit, "confirm"));
}

/** Their challenge is the proof for {@link addPasskey}: it comes back once, from this session. */
function passkeyOptions(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  return orProblem(async () => {
    requirePasskeys(services);
    checkPasskeyName(visit.form.get("name") ?? "");
    await requireConfirmation(services, visit);
    const { memberId: id, email } = visit.member;
    return services.ceremonies.startAdding(visit, { id, email }, "add");
  });
}

function addPasskey(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  return orRefusal(
    async () => {
      const name = visit.form.get("name") ?? "";
      checkPasskeyName(name);
      const passkey = await services.ceremonies.finishAdding(visit, name, "add");
      await requireSession(services, visit);
      await services.passkeys.add(authorOf(visit), passkey);
      return seeOther(pathWithNotice("passkey"));
    },
    (problem) => showAccount(services, visit, problem),
  );
}

async function showRemoval(
  services: ConsoleServices,
  visit: MemberVisit,
  problem: string | null = null,
): Promise<Response> {
  const passkey = await findPasskey(services, visit);
  if (passkey === null) return notFoundPage();
  const { memberId } = visit.member;
  const state = {
    passkey,
    ways: await waysOf(services, visit),
    obstacle: await services.passkeys.removalObstacle(memberId, passkey.id),
    problem,
  };
  return page(<RemovePasskeyPage visit={visit} state={state} />, problem === null ? 200 : 422);
}

function removePasskey(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  return orRefusal(
    async () => {
      const passkey = await findPasskey(services, visit);
      if (passkey === null) return notFoundPage();
      await requireConfirmation(services, visit);
      await requireSession(services, visit);
      await services.passkeys.remove(authorOf(visit), passkey.id);
      return seeOther(pathWithNotice("removed"));
    },
    (problem) => showRemoval(services, visit, problem),
  );
}

/** Another member's passkey is as unknown as one that does not exist. */
async function findPasskey(
  { passkeys }: ConsoleServices,
  { member, params }: MemberVisit,
): Promise<Passkey | null> {
  const own = await passkeys.list(member.memberId);
  return own.find(({ id }) => id === params["id"]) ?? null;
}

/** A session that has ended meanwhile is no problem: the member wanted it gone. */
async function endSession(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const { memberId: actor, deskId } = visit.member;
  const ended = await services.sessions.endOne(actor, visit.params["id"] ?? "");
  if (ended !== null) {
    const detail = `${ended.browser}, ${ended.address}`;
    const action = "member.session_ended";
    await services.audit.append({ deskId, actor, client: visit.address, action, detail });
  }
  return seeOther(pathWithNotice("ended"));
}

async function signOutElsewhere(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const account = await services.members.signOutEverywhere(authorOf(visit));
  return startAgain(services, visit, account, "elsewhere");
}

/** All sessions have ended: this browser gets another one. */
async function startAgain(
  services: ConsoleServices,
  visit: MemberVisit,
  account: Account,
  done: Parameters<typeof pathWithNotice>[0],
): Promise<Response> {
  await startSession(services, visit, account, visit.member.session.passkeyId);
  return seeOther(pathWithNotice(done));
}
