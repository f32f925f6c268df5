/** The first password or passkey: `/join/…` by a one-time link, `/passkey` at a desk that requires passkeys. */
import type { ComponentChildren, VNode } from "preact";
import { UserError } from "../../../lib/errors.ts";
import { passkeyScripts } from "../../server/assets.ts";
import { page, seeOther } from "../../server/responses.ts";
import {
  forEverybody,
  forSignedIn,
  type Options,
  type Route,
  type Send,
  type Show,
} from "../../server/routes.ts";
import { authorOf, requireSession, type Visit } from "../../server/visit.ts";
import { ButtonLink, Problem } from "../../ui/components.tsx";
import { Buttons, Field, PasskeyForm, PostForm } from "../../ui/forms.tsx";
import { newPasswordHint } from "../../ui/hints.ts";
import { Layout } from "../../ui/layout.tsx";
import { admit, startSession } from "./admission.ts";
import { hashNewPassword } from "./credentials.ts";
import type { PasskeyCeremonies } from "./passkeys.ts";

/** Its owner can tell it from others in the list once there are others. */
const FIRST_PASSKEY_NAME = "First passkey";
const BY_LINK = "with a one-time link";

const showJoin: Show<Visit> = async ({ ceremonies, members }, visit, problem) => {
  const token = tokenOf(visit);
  const invitation = await members.findInvitation(token);
  if (invitation === null) return gone();
  const { kind, passkeys_required: needsPasskey, member } = invitation;
  const path = `/join/${token}`;
  const resetTitle = needsPasskey ? "Create a new passkey" : "Set a new password";
  return (
    <Layout
      title={kind === "join" ? `Join desk ${member.desk}` : resetTitle}
      isAlone
      scripts={ceremonies.isPossible ? passkeyScripts : []}
    >
      <Problem>{problem}</Problem>
      {kind === "reset" && (
        <p>Your earlier password and passkeys stop working, and you are signed out elsewhere.</p>
      )}
      {needsPasskey ? (
        <p>
          You sign in as <strong>{member.email}</strong>.
        </p>
      ) : (
        <NewPasswordForm path={path} email={member.email} />
      )}
      <FirstPasskeyForm action={`${path}/passkey`} ceremonies={ceremonies} isOnlyWay={needsPasskey}>
        <p>
          {needsPasskey
            ? "Your desk requires a passkey: you sign in with your device's lock or a security key."
            : "Or sign in without a password, with your device's lock or a security key:"}
        </p>
        <p class="actions">
          <button class={needsPasskey ? undefined : "quiet"}>
            {needsPasskey ? "Create passkey" : "Use a passkey instead"}
          </button>
        </p>
      </FirstPasskeyForm>
    </Layout>
  );
};

function NewPasswordForm({ path, email }: { path: string; email: string }): VNode {
  return (
    <PostForm class="card" action={path}>
      <Field id="email" label="Email address">
        <input id="email" type="text" autocomplete="username" value={email} readonly />
      </Field>
      <Field
        id="password"
        label="New password"
        hint={newPasswordHint}
        type="password"
        autocomplete="new-password"
        required
        autofocus
      />
      <Buttons verb="Set password" />
    </PostForm>
  );
}

/** `isOnlyWay`: nothing else can be done here, and the page says so if a passkey cannot be made. */
function FirstPasskeyForm({
  action,
  ceremonies: { isPossible },
  isOnlyWay,
  children,
}: {
  action: string;
  ceremonies: PasskeyCeremonies;
  isOnlyWay: boolean;
  children: ComponentChildren;
}): VNode | null {
  if (!isPossible && !isOnlyWay) return null;
  if (!isPossible) {
    return (
      <Problem>
        Passkeys need a host name, and this console was opened by IP address. Ask the administrator
        of the server to name it with --console-url, such as https://console.example.com.
      </Problem>
    );
  }
  return (
    <>
      {isOnlyWay && (
        <noscript>
          <p class="problem">Creating a passkey needs JavaScript.</p>
        </noscript>
      )}
      <PasskeyForm use="create" action={action}>
        {children}
      </PasskeyForm>
    </>
  );
}

const joinWithPassword: Send<Visit> = async (services, visit) => {
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
};

const joinOptions: Options<Visit> = async ({ ceremonies, members }, visit) => {
  const invitation = await members.findInvitation(tokenOf(visit));
  if (invitation === null || !ceremonies.isPossible) {
    throw new UserError("The link does not work any more: load the page again.");
  }
  return ceremonies.startAdding(visit, invitation.member, "join");
};

const joinWithPasskey: Send<Visit> = async (services, visit) => {
  const { ceremonies, members } = services;
  const passkey = await ceremonies.finishAdding(visit, FIRST_PASSKEY_NAME, "join");
  const account = await members.spendLink(tokenOf(visit), { passkey }, visit.address);
  if (account === null) return gone();
  await admit(services, visit, account, { how: BY_LINK, passkeyId: passkey.id });
  return seeOther("/");
};

/** Other members may not come here: adding another passkey takes the current password. */
const showRequired: Show = ({ ceremonies }, visit, problem) => {
  if (!visit.member.mustAddPasskey) return seeOther("/");
  return (
    <Layout title="Add a passkey" isAlone scripts={ceremonies.isPossible ? passkeyScripts : []}>
      <Problem>{problem}</Problem>
      <p>
        Desk <strong>{visit.member.desk}</strong> requires passkeys, and you have none yet. With
        one, you sign in with your device's lock or a security key. Your password then stops
        working.
      </p>
      <FirstPasskeyForm action="/passkey" ceremonies={ceremonies} isOnlyWay>
        <Buttons verb="Add passkey" />
      </FirstPasskeyForm>
      <PostForm action="/sign-out">
        <p class="actions">
          <button class="quiet">Sign out</button>
        </p>
      </PostForm>
    </Layout>
  );
};

const addRequired: Send = async (services, visit) => {
  const { ceremonies, members, passkeys } = services;
  if (!visit.member.mustAddPasskey) return seeOther("/");
  const passkey = await ceremonies.finishAdding(visit, FIRST_PASSKEY_NAME, "join");
  await requireSession(services, visit);
  const account = await members.find(visit.member.memberId);
  if (account === null) return seeOther("/sign-in");
  await passkeys.add(authorOf(visit), passkey, { onlyIfFirst: true });
  await startSession(services, visit, account, passkey.id);
  return seeOther("/");
};

const requiredOptions: Options = async ({ ceremonies }, visit) => {
  const { mustAddPasskey, memberId: id, email } = visit.member;
  if (!mustAddPasskey || !ceremonies.isPossible) {
    throw new UserError("The page is out of date: load it again.");
  }
  return ceremonies.startAdding(visit, { id, email }, "join");
};

function tokenOf({ params }: Visit): string {
  return params["token"] ?? "";
}

/** One page for every reason: trying tokens reveals nothing. */
function gone(): Response {
  return page(
    <Layout title="This link does not work any more">
      <div class="card">
        <p>A link works once, for 24 hours, and a newer one replaces it.</p>
        <p>
          Ask a manager of your desk to invite you again, or your administrator, who types{" "}
          <code>signalbox member invite</code>, or <code>signalbox member reset</code> if you have
          joined before.
        </p>
        <p class="actions">
          <ButtonLink to="/sign-in">Sign in</ButtonLink>
        </p>
      </div>
    </Layout>,
    null,
    410,
  );
}

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
