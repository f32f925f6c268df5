/** The first password or passkey: by a one-time link, or because the desk requires a passkey. */
import type { ComponentChildren, VNode } from "preact";
import type { LinkKind, Member } from "../../domain/member.ts";
import { Problem } from "../ui/components.tsx";
import { Buttons, Field, PostForm } from "../ui/forms.tsx";
import { newPasswordHint } from "../ui/hints.ts";
import { Layout } from "../ui/layout.tsx";
import type { MemberVisit, Visit } from "../web/visit.ts";
import { passkeyScripts } from "./page.tsx";
import { RESPONSE_FIELD } from "./passkeys.ts";

export function JoinPage({
  visit,
  path,
  kind,
  member: { desk, email },
  needsPasskey,
  problem,
  hasPasskeys,
}: {
  visit: Visit;
  path: string;
  kind: LinkKind;
  member: Member;
  /** The desk requires one. */
  needsPasskey: boolean;
  problem: string | null;
  hasPasskeys: boolean;
}): VNode {
  const resetTitle = needsPasskey ? "Create a new passkey" : "Set a new password";
  return (
    <Layout
      title={kind === "join" ? `Join desk ${desk}` : resetTitle}
      scripts={hasPasskeys ? passkeyScripts : []}
    >
      <Problem>{problem}</Problem>
      {kind === "reset" && (
        <p>Your earlier password and passkeys stop working, and you are signed out elsewhere.</p>
      )}
      {needsPasskey ? (
        <p>
          You sign in as <strong>{email}</strong>.
        </p>
      ) : (
        <NewPasswordForm visit={visit} path={path} email={email} />
      )}
      {hasPasskeys && <NewPasskeyForm visit={visit} path={path} isOnlyWay={needsPasskey} />}
      {needsPasskey && !hasPasskeys && <NoPasskeysHere />}
    </Layout>
  );
}

interface LinkForm {
  readonly visit: Visit;
  readonly path: string;
}

function NewPasswordForm({ visit, path, email }: LinkForm & { email: string }): VNode {
  return (
    <PostForm visit={visit} class="card" action={path}>
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

function NewPasskeyForm({ visit, path, isOnlyWay }: LinkForm & { isOnlyWay: boolean }): VNode {
  return (
    <PasskeyCreation visit={visit} path={`${path}/passkey`} isOnlyWay={isOnlyWay}>
      <p>
        {isOnlyWay
          ? "Your desk requires a passkey: you sign in with your device's lock or a security key."
          : "Or sign in without a password, with your device's lock or a security key:"}
      </p>
      <p class="actions">
        <button class={isOnlyWay ? undefined : "quiet"}>
          {isOnlyWay ? "Create passkey" : "Use a passkey instead"}
        </button>
      </p>
    </PasskeyCreation>
  );
}

/** For a member who signed in with a password at a desk that requires passkeys. */
export function RequiredPasskeyPage({
  visit,
  problem,
  hasPasskeys,
}: {
  visit: MemberVisit;
  problem: string | null;
  hasPasskeys: boolean;
}): VNode {
  return (
    <Layout title="Add a passkey" scripts={hasPasskeys ? passkeyScripts : []}>
      <Problem>{problem}</Problem>
      <p>
        Desk <strong>{visit.member.desk}</strong> requires passkeys, and you have none yet. With
        one, you sign in with your device's lock or a security key. Your password then stops
        working.
      </p>
      {hasPasskeys ? (
        <PasskeyCreation visit={visit} path="/passkey" isOnlyWay>
          <Buttons verb="Add passkey" />
        </PasskeyCreation>
      ) : (
        <NoPasskeysHere />
      )}
      <PostForm visit={visit} action="/sign-out">
        <p class="actions">
          <button class="quiet">Sign out</button>
        </p>
      </PostForm>
    </Layout>
  );
}

/** The options come from below `path`. `isOnlyWay`: without JavaScript nothing else can be done. */
function PasskeyCreation({
  visit,
  path,
  isOnlyWay,
  children,
}: LinkForm & { isOnlyWay: boolean; children: ComponentChildren }): VNode {
  return (
    <>
      {isOnlyWay && (
        <noscript>
          <p class="problem">Creating a passkey needs JavaScript.</p>
        </noscript>
      )}
      <PostForm
        visit={visit}
        class="card"
        action={path}
        data-passkey="create"
        data-options={`${path}/options`}
        hidden
      >
        <input type="hidden" name={RESPONSE_FIELD} />
        {children}
      </PostForm>
    </>
  );
}

/** WebAuthn knows hosts by their names. */
function NoPasskeysHere(): VNode {
  return (
    <Problem>
      Passkeys need a host name, and this console was opened by IP address. Ask the administrator of
      the server to name it with --console-url, such as https://console.example.com.
    </Problem>
  );
}
