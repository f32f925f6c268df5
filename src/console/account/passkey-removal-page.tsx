/** Asks for the password or a passkey before a passkey is removed. */
import type { VNode } from "preact";
import type { Passkey } from "../../domain/member.ts";
import { passkeyScripts } from "../sign-in/page.tsx";
import { Problem } from "../ui/components.tsx";
import { PostForm, Username } from "../ui/forms.tsx";
import { Layout } from "../ui/layout.tsx";
import type { MemberVisit } from "../web/visit.ts";
import type { Ways } from "./confirmation.ts";
import { Confirm } from "./confirmation-form.tsx";

interface State {
  readonly passkey: Passkey;
  readonly ways: Ways;
  /** Why it cannot be removed; null: it can. */
  readonly obstacle: string | null;
  readonly problem: string | null;
}

export function RemovePasskeyPage({ visit, state }: { visit: MemberVisit; state: State }): VNode {
  const { passkey, ways, obstacle, problem } = state;
  return (
    <Layout title="Remove a passkey" visit={visit} scripts={passkeyScripts}>
      <Problem>{obstacle ?? problem}</Problem>
      {obstacle === null ? (
        <>
          <p>
            You will no longer be able to sign in with{" "}
            <bdi>
              <strong>{passkey.name}</strong>
            </bdi>
            , and every browser that signed in with it will be signed out.
          </p>
          <PostForm visit={visit} class="card" action={`/account/passkeys/${passkey.id}/remove`}>
            <Username email={visit.member.email} />
            <Confirm ways={ways} verb="Remove passkey" isDanger back="/account" />
          </PostForm>
        </>
      ) : (
        <p>
          <a href="/account">Back to the account</a>
        </p>
      )}
    </Layout>
  );
}
