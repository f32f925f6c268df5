/** Asks for the password or a passkey before one is removed. */
import type { VNode } from "preact";
import type { Passkey } from "../../domain/member.ts";
import type { Ways } from "./confirmation.ts";
import type { MemberVisit } from "../web/visit.ts";
import { Confirm } from "./confirmation-form.tsx";
import { Csrf, Layout, Problem } from "../ui/layout.tsx";
import { passkeyScripts } from "../sign-in/page.tsx";

interface State {
  readonly passkey: Passkey;
  readonly ways: Ways;
  /** Why it cannot be removed; null where it can. */
  readonly obstacle: string | null;
  readonly problem: string | null;
}

export function RemovePasskeyPage({ visit, state }: { visit: MemberVisit; state: State }): VNode {
  const { obstacle, problem } = state;
  return (
    <Layout
      title="Remove a passkey"
      member={visit.member}
      csrfToken={visit.csrfToken}
      place="/account"
      scripts={passkeyScripts}
    >
      {obstacle === null && problem !== null && <Problem>{problem}</Problem>}
      {obstacle === null ? (
        <RemovalForm visit={visit} state={state} />
      ) : (
        <>
          <Problem>{obstacle}</Problem>
          <p>
            <a href="/account">Back to the account</a>
          </p>
        </>
      )}
    </Layout>
  );
}

function RemovalForm({ visit, state }: { visit: MemberVisit; state: State }): VNode {
  const { passkey, ways } = state;
  return (
    <>
      <p>
        You will no longer be able to sign in with{" "}
        <bdi>
          <strong>{passkey.name}</strong>
        </bdi>
        , and every browser that signed in with it will be signed out.
      </p>
      <form class="card" method="post" action={`/account/passkeys/${passkey.id}/remove`}>
        <Csrf token={visit.csrfToken} />
        <input type="text" name="email" autocomplete="username" value={visit.member.email} hidden />
        <Confirm ways={ways} verb="Remove the passkey" isDanger back="/account" />
      </form>
    </>
  );
}
