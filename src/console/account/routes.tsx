/** `/account`: the password, passkeys and sessions of a member. */
import type { VNode } from "preact";
import { UserError } from "../../domain/errors.ts";
import type { Account, Passkey } from "../../domain/member.ts";
import { checkPasskeyName } from "../../domain/note.ts";
import { startSession } from "../sign-in/admission.ts";
import { hashNewPassword } from "../sign-in/credentials.ts";
import { requirePasskeys } from "../sign-in/passkeys.ts";
import { seeOther } from "../web/responses.ts";
import { type Answer, forMembers, found, type Route } from "../web/routes.ts";
import type { ConsoleServices } from "../web/services.ts";
import { authorOf, type MemberVisit, requireSession } from "../web/visit.ts";
import { CONFIRM_OPTIONS_PATH, requireConfirmation, waysOf } from "./confirmation.ts";
import { pathWithNotice } from "./notices.ts";
import { AccountPage } from "./page.tsx";
import { RemovePasskeyPage } from "./passkey-removal-page.tsx";

const ofAccount = { again: showAccount, page: "/account" };

export const accountRoutes: readonly Route[] = [
  forMembers.page("/account", showAccount),
  forMembers.form("/account/password", changePassword, ofAccount),
  forMembers.passkey(CONFIRM_OPTIONS_PATH, confirmOptions, "/account"),
  forMembers.passkey("/account/passkeys/options", passkeyOptions, "/account"),
  forMembers.form("/account/passkeys", addPasskey, ofAccount),
  forMembers.page("/account/passkeys/:id/remove", showRemoval),
  forMembers.form("/account/passkeys/:id/remove", removePasskey, { again: showRemoval }),
  forMembers.form("/account/sessions/:id/end", endSession, ofAccount),
  forMembers.form("/account/sign-out-everywhere", signOutElsewhere, ofAccount),
];

async function showAccount(
  services: ConsoleServices,
  visit: MemberVisit,
  problem: string | null,
): Promise<Answer> {
  const { ceremonies, passkeys, sessions } = services;
  const account = await services.members.find(visit.member.memberId);
  if (account === null) return seeOther("/sign-in");
  const state = {
    account,
    passkeys: await passkeys.list(account.id),
    sessions: await sessions.list(account.id, visit.now),
    ways: await waysOf(services, visit),
    canHavePasskeys: ceremonies.isPossible,
    problem,
  };
  return <AccountPage visit={visit} state={state} />;
}

async function changePassword(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const { memberId: id, email, desk } = visit.member;
  const { hasPassword } = await waysOf(services, visit);
  if ((await services.members.find(id))?.passkeys_required === true) {
    throw new UserError("Your desk requires passkeys: a password would not let you in.");
  }
  await requireConfirmation(services, visit);
  const password = visit.form.get("new") ?? "";
  const hash = await hashNewPassword(services, { id, email, desk }, password);
  await requireSession(services, visit);
  const account = await services.members.setPassword(authorOf(visit), hash);
  return startAgain(services, visit, account, hasPassword ? "password" : "password-set");
}

function confirmOptions({ ceremonies }: ConsoleServices, visit: MemberVisit): Promise<object> {
  return ceremonies.startProving(visit, "confirm");
}

/** Their challenge is the proof for {@link addPasskey}: it comes back once, from this session. */
async function passkeyOptions(services: ConsoleServices, visit: MemberVisit): Promise<object> {
  requirePasskeys(services);
  checkPasskeyName(visit.form.get("name") ?? "");
  await requireConfirmation(services, visit);
  const { memberId: id, email } = visit.member;
  return services.ceremonies.startAdding(visit, { id, email }, "add");
}

async function addPasskey(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const name = visit.form.get("name") ?? "";
  checkPasskeyName(name);
  const passkey = await services.ceremonies.finishAdding(visit, name, "add");
  await requireSession(services, visit);
  await services.passkeys.add(authorOf(visit), passkey);
  return seeOther(pathWithNotice("passkey"));
}

async function showRemoval(
  services: ConsoleServices,
  visit: MemberVisit,
  problem: string | null,
): Promise<VNode> {
  const passkey = await findPasskey(services, visit);
  const { memberId } = visit.member;
  const state = {
    passkey,
    ways: await waysOf(services, visit),
    obstacle: await services.passkeys.removalObstacle(memberId, passkey.id),
    problem,
  };
  return <RemovePasskeyPage visit={visit} state={state} />;
}

async function removePasskey(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const { id } = await findPasskey(services, visit);
  await requireConfirmation(services, visit);
  await requireSession(services, visit);
  await services.passkeys.remove(authorOf(visit), id);
  return seeOther(pathWithNotice("removed"));
}

/** Another member's passkey is as unknown as one that does not exist. */
async function findPasskey(
  { passkeys }: ConsoleServices,
  { member, params }: MemberVisit,
): Promise<Passkey> {
  const own = await passkeys.list(member.memberId);
  return found(own.find(({ id }) => id === params["id"]));
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
