/** @jsxImportSource preact */
/** Asks for the password or a passkey before one is removed. */
import type { VNode } from "preact";
import type { Passkey } from "../../domain/member.ts";
import { RESPONSE_FIELD } from "../passkeys.ts";
import type { MemberVisit } from "../visit.ts";
import { Csrf, Layout, Problem } from "./layout.tsx";
import { passkeyScripts } from "./sign-in.tsx";

interface State {
  readonly passkey: Passkey;
  readonly hasPassword: boolean;
  readonly problem: string | null;
}

export function RemovePasskeyPage({ visit, state }: { visit: MemberVisit; state: State }): VNode {
  const { passkey, hasPassword, problem } = state;
  const path = `/account/passkeys/${passkey.id}/remove`;
  return (
    <Layout
      title="Remove a passkey"
      member={visit.member}
      csrfToken={visit.csrfToken}
      place="/account"
      scripts={passkeyScripts}
    >
      {problem !== null && <Problem>{problem}</Problem>}
      <p>
        You will no longer be able to sign in with{" "}
        <bdi>
          <strong>{passkey.name}</strong>
        </bdi>
        , and every browser that signed in with it will be signed out.
      </p>
      {hasPassword && <PasswordForm visit={visit} path={path} />}
      <PasskeyForm visit={visit} path={path} isOnlyWay={!hasPassword} />
    </Layout>
  );
}

function PasswordForm({ visit, path }: { visit: MemberVisit; path: string }): VNode {
  return (
    <form class="card" method="post" action={path}>
      <Csrf token={visit.csrfToken} />
      <input type="text" name="email" autocomplete="username" value={visit.member.email} hidden />
      <div class="field">
        <label for="current">Current password</label>
        <input
          id="current"
          name="current"
          type="password"
          autocomplete="current-password"
          required
        />
      </div>
      <p class="actions">
        <button class="danger">Remove the passkey</button>
        <a class="button quiet" href="/account">
          Cancel
        </a>
      </p>
    </form>
  );
}

function PasskeyForm({
  visit,
  path,
  isOnlyWay,
}: {
  visit: MemberVisit;
  path: string;
  isOnlyWay: boolean;
}): VNode {
  return (
    <>
      {isOnlyWay && (
        <noscript>
          <p class="hint">Confirming with a passkey needs JavaScript.</p>
        </noscript>
      )}
      <form
        class="card"
        method="post"
        action={path}
        data-passkey="get"
        data-options={`${path}/options`}
        hidden
      >
        <Csrf token={visit.csrfToken} />
        <input type="hidden" name={RESPONSE_FIELD} />
        <p class="actions">
          <button class={isOnlyWay ? "danger" : "quiet danger"}>Confirm with a passkey</button>
          {isOnlyWay && (
            <a class="button quiet" href="/account">
              Cancel
            </a>
          )}
        </p>
      </form>
    </>
  );
}
