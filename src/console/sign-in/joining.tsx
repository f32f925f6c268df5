/** The first password or passkey: by a one-time link, or because the desk requires a passkey. */
import type { ComponentChildren, VNode } from "preact";
import type { LinkKind, Member } from "../../domain/member.ts";
import { PASSWORD_CHARACTERS_MIN } from "../../domain/password.ts";
import { RESPONSE_FIELD } from "./passkeys.ts";
import type { MemberVisit, Visit } from "../web/visit.ts";
import { Csrf, Layout, Problem } from "../ui/layout.tsx";
import { passkeyScripts } from "./page.tsx";

export function JoinPage({
  visit: { csrfToken },
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
  return (
    <Layout
      title={kind === "join" ? `Join desk ${desk}` : resetTitle(needsPasskey)}
      member={null}
      scripts={hasPasskeys ? passkeyScripts : []}
    >
      {problem !== null && <Problem>{problem}</Problem>}
      {kind === "reset" && (
        <p>Your earlier password and passkeys stop working, and you are signed out elsewhere.</p>
      )}
      {!needsPasskey && <NewPasswordForm csrfToken={csrfToken} path={path} email={email} />}
      {needsPasskey && (
        <p>
          You sign in as <strong>{email}</strong>.
        </p>
      )}
      {hasPasskeys && <NewPasskeyForm path={path} csrfToken={csrfToken} isOnlyWay={needsPasskey} />}
      {needsPasskey && !hasPasskeys && <NoPasskeysHere />}
    </Layout>
  );
}

function resetTitle(needsPasskey: boolean): string {
  return needsPasskey ? "Create another passkey" : "Choose another password";
}

function NewPasswordForm({
  csrfToken,
  path,
  email,
}: {
  csrfToken: string;
  path: string;
  email: string;
}): VNode {
  return (
    <form class="card" method="post" action={path}>
      <Csrf token={csrfToken} />
      <div class="field">
        <label for="email">Email address</label>
        <input id="email" type="text" autocomplete="username" value={email} readonly />
      </div>
      <div class="field">
        <label for="password">New password</label>
        <input
          id="password"
          name="password"
          type="password"
          autocomplete="new-password"
          aria-describedby="password-hint"
          required
          autofocus
        />
        <p class="hint" id="password-hint">
          At least {PASSWORD_CHARACTERS_MIN} characters, such as four or five random words.
        </p>
      </div>
      <p class="actions">
        <button>Set the password</button>
      </p>
    </form>
  );
}

function NewPasskeyForm({
  csrfToken,
  path,
  isOnlyWay,
}: {
  csrfToken: string;
  path: string;
  isOnlyWay: boolean;
}): VNode {
  return (
    <PasskeyCreation csrfToken={csrfToken} path={`${path}/passkey`} isOnlyWay={isOnlyWay}>
      <p>
        {isOnlyWay
          ? "Your desk requires a passkey: you sign in with your device's lock or a security key."
          : "Or sign in without a password, with your device's lock or a security key:"}
      </p>
      <p class="actions">
        <button class={isOnlyWay ? undefined : "quiet"}>
          {isOnlyWay ? "Create a passkey" : "Use a passkey instead"}
        </button>
      </p>
    </PasskeyCreation>
  );
}

/** Signed in with a password at a desk that requires passkeys: nothing but this page is open. */
export function RequiredPasskeyPage({
  visit: { csrfToken, member },
  problem,
  hasPasskeys,
}: {
  visit: MemberVisit;
  problem: string | null;
  hasPasskeys: boolean;
}): VNode {
  return (
    <Layout title="Add a passkey" member={null} scripts={hasPasskeys ? passkeyScripts : []}>
      {problem !== null && <Problem>{problem}</Problem>}
      <p>
        Desk <strong>{member.desk}</strong> requires passkeys, and you have none yet. With one, you
        sign in with your device's lock or a security key. Your password then stops working.
      </p>
      {hasPasskeys ? (
        <PasskeyCreation csrfToken={csrfToken} path="/passkey" isOnlyWay>
          <p class="actions">
            <button>Add a passkey</button>
          </p>
        </PasskeyCreation>
      ) : (
        <NoPasskeysHere />
      )}
      <form method="post" action="/sign-out">
        <Csrf token={csrfToken} />
        <p class="actions">
          <button class="quiet">Sign out</button>
        </p>
      </form>
    </Layout>
  );
}

/** The options come from below `path`. `isOnlyWay`: without JavaScript there is nothing else to do. */
function PasskeyCreation({
  csrfToken,
  path,
  isOnlyWay,
  children,
}: {
  csrfToken: string;
  path: string;
  isOnlyWay: boolean;
  children: ComponentChildren;
}): VNode {
  return (
    <>
      {isOnlyWay && (
        <noscript>
          <p class="problem">Creating a passkey needs JavaScript.</p>
        </noscript>
      )}
      <form
        class="card"
        method="post"
        action={path}
        data-passkey="create"
        data-options={`${path}/options`}
        hidden
      >
        <Csrf token={csrfToken} />
        <input type="hidden" name={RESPONSE_FIELD} />
        {children}
      </form>
    </>
  );
}

/** WebAuthn knows hosts by their names. */
function NoPasskeysHere(): VNode {
  return (
    <Problem>
      Passkeys need a name, and this console is reached by an address. Ask the administrator of the
      server to give it one with --console-url, such as https://console.example.com.
    </Problem>
  );
}
