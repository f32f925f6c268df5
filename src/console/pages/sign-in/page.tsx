/** The sign-in page. */
import type { VNode } from "preact";
import { Problem } from "../../ui/components.tsx";
import { Buttons, Field, PostForm } from "../../ui/forms.tsx";
import { Layout } from "../../ui/layout.tsx";
import { assets } from "../../server/assets.ts";
import type { Visit } from "../../server/visit.ts";
import { RESPONSE_FIELD } from "./passkeys.ts";

/** For pages on which a passkey may be used. */
export const passkeyScripts = [assets.webauthn.path, assets.passkeys.path] as const;

export function SignInPage({
  visit,
  next,
  problem,
  hasPasskeys,
}: {
  visit: Visit;
  /** The path to go to afterwards. */
  next: string;
  problem: string | null;
  hasPasskeys: boolean;
}): VNode {
  const email = visit.form.get("email") ?? "";
  return (
    <Layout title="Sign in" scripts={hasPasskeys ? passkeyScripts : []}>
      <Problem>{problem}</Problem>
      <PostForm visit={visit} class="card" action="/sign-in">
        <input type="hidden" name="next" value={next} />
        <Field
          id="email"
          label="Email address"
          type="text"
          inputmode="email"
          autocomplete="username"
          autocapitalize="none"
          spellcheck={false}
          value={email}
          required
          autofocus={email === ""}
        />
        <Field
          id="password"
          label="Password"
          type="password"
          autocomplete="current-password"
          required
          autofocus={email !== ""}
        />
        <Buttons verb="Sign in" />
      </PostForm>
      {hasPasskeys && (
        <PostForm
          visit={visit}
          class="card"
          action="/sign-in/passkey"
          data-passkey="get"
          data-options="/sign-in/passkey/options"
          hidden
        >
          <input type="hidden" name="next" value={next} />
          <input type="hidden" name={RESPONSE_FIELD} />
          <p class="actions">
            <button class="quiet">Sign in with a passkey</button>
          </p>
        </PostForm>
      )}
      <p class="hint">
        Not a member yet? Ask one to invite you. Forgot your password? Ask your administrator for a
        link.
      </p>
    </Layout>
  );
}
