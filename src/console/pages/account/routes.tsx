/** `/account`: the password, passkeys and sessions of a member. */
import { UserError } from "../../../lib/errors.ts";
import type { Account, Passkey } from "../../../domain/member/member.ts";
import { checkPasskeyName } from "../../../domain/desk/note.ts";
import { startSession } from "../sign-in/admission.ts";
import { hashNewPassword } from "../sign-in/credentials.ts";
import { requirePasskeys } from "../sign-in/passkeys.ts";
import { Problem, QuietLink } from "../../ui/components.tsx";
import { FormPage } from "../../ui/form-page.tsx";
import { CONFIRM_OPTIONS_PATH } from "../../ui/forms.tsx";
import { Layout } from "../../ui/layout.tsx";
import { seeOther } from "../../server/responses.ts";
import {
  forAccount,
  found,
  type Options,
  type Route,
  type Send,
  type Show,
} from "../../server/routes.ts";
import type { ConsoleServices } from "../../server/services.ts";
import { authorOf, type MemberVisit, requireSession } from "../../server/visit.ts";
import { requireConfirmation, waysOf } from "./confirmation.ts";
import { pathWithNotice } from "./notices.ts";
import { AccountPage } from "./page.tsx";

const showAccount: Show = async (services, visit, problem) => {
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
  return <AccountPage {...state} />;
};

const changePassword: Send = async (services, visit) => {
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
};

const confirmOptions: Options = ({ ceremonies }, visit) => {
  return ceremonies.startProving(visit, "confirm");
};

/** Their challenge is the proof for {@link addPasskey}: it comes back once, from this session. */
const passkeyOptions: Options = async (services, visit) => {
  requirePasskeys(services);
  checkPasskeyName(visit.form.get("name") ?? "");
  await requireConfirmation(services, visit);
  const { memberId: id, email } = visit.member;
  return services.ceremonies.startAdding(visit, { id, email }, "add");
};

const addPasskey: Send = async (services, visit) => {
  const name = visit.form.get("name") ?? "";
  checkPasskeyName(name);
  const passkey = await services.ceremonies.finishAdding(visit, name, "add");
  await requireSession(services, visit);
  await services.passkeys.add(authorOf(visit), passkey);
  return seeOther(pathWithNotice("passkey"));
};

/** Asks for the password or a passkey. */
const showRemoval: Show = async (services, visit, problem) => {
  const passkey = await findPasskey(services, visit);
  const obstacle = await services.passkeys.removalObstacle(visit.member.memberId, passkey.id);
  const title = "Remove a passkey";
  if (obstacle !== null) {
    return (
      <Layout title={title}>
        <Problem>{obstacle}</Problem>
        <p class="actions">
          <QuietLink to="/account">Back to the account</QuietLink>
        </p>
      </Layout>
    );
  }
  return (
    <FormPage
      title={title}
      problem={problem}
      action={`/account/passkeys/${passkey.id}/remove`}
      ways={await waysOf(services, visit)}
      verb="Remove passkey"
      back="/account"
      isDanger
    >
      <p>
        You will no longer be able to sign in with{" "}
        <bdi>
          <strong>{passkey.name}</strong>
        </bdi>
        , and every browser that signed in with it will be signed out.
      </p>
    </FormPage>
  );
};

const removePasskey: Send = async (services, visit) => {
  const { id } = await findPasskey(services, visit);
  await requireConfirmation(services, visit);
  await requireSession(services, visit);
  await services.passkeys.remove(authorOf(visit), id);
  return seeOther(pathWithNotice("removed"));
};

/** Another member's passkey is as unknown as one that does not exist. */
async function findPasskey(
  { passkeys }: ConsoleServices,
  { member, params }: MemberVisit,
): Promise<Passkey> {
  const own = await passkeys.list(member.memberId);
  return found(own.find(({ id }) => id === params["id"]));
}

/** A session that has ended meanwhile is no problem: the member wanted it gone. */
const endSession: Send = async (services, visit) => {
  const { memberId: actor, deskId } = visit.member;
  const ended = await services.sessions.endOne(actor, visit.params["id"] ?? "");
  if (ended !== null) {
    const detail = `${ended.browser}, ${ended.address}`;
    const action = "member.session_ended";
    await services.audit.append({ deskId, actor, client: visit.address, action, detail });
  }
  return seeOther(pathWithNotice("ended"));
};

const signOutElsewhere: Send = async (services, visit) => {
  const account = await services.members.signOutEverywhere(authorOf(visit));
  return startAgain(services, visit, account, "elsewhere");
};

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

const ofAccount = { again: showAccount, page: "/account" };

export const accountRoutes: readonly Route[] = [
  forAccount.page("/account", showAccount),
  forAccount.form("/account/password", changePassword, ofAccount),
  forAccount.passkey(CONFIRM_OPTIONS_PATH, confirmOptions, "/account"),
  forAccount.passkey("/account/passkeys/options", passkeyOptions, "/account"),
  forAccount.form("/account/passkeys", addPasskey, ofAccount),
  forAccount.page("/account/passkeys/:id/remove", showRemoval),
  forAccount.form("/account/passkeys/:id/remove", removePasskey, { again: showRemoval }),
  forAccount.form("/account/sessions/:id/end", endSession, ofAccount),
  forAccount.form("/account/sign-out-everywhere", signOutElsewhere, ofAccount),
];
