/** Pages for people who are not signed in. */
import type { VNode } from "preact";
import { assets } from "../web/assets.ts";
import { RESPONSE_FIELD } from "./passkeys.ts";
import type { Visit } from "../web/visit.ts";
import { Csrf, Layout, Problem } from "../ui/layout.tsx";

/** For pages on which a passkey may be used. */
export const passkeyScripts = [assets.webauthn.path, assets.passkeys.path] as const;

export interface SignInState {
  /** What was typed before. */
  readonly email: string;
  readonly next: string;
  readonly problem: string | null;
}

export function SignInPage({
  visit: { csrfToken },
  state: { email, next, problem },
  hasPasskeys,
}: {
  visit: Visit;
  state: SignInState;
  hasPasskeys: boolean;
}): VNode {
  return (
    <Layout title="Sign in" member={null} scripts={hasPasskeys ? passkeyScripts : []}>
      {problem !== null && <Problem>{problem}</Problem>}
      <form class="card" method="post" action="/sign-in">
        <Csrf token={csrfToken} />
        <input type="hidden" name="next" value={next} />
        <div class="field">
          <label for="email">Email address</label>
          <input
            id="email"
            name="email"
            type="text"
            inputmode="email"
            autocomplete="username"
            autocapitalize="none"
            spellcheck={false}
            value={email}
            required
            autofocus={email === ""}
          />
        </div>
        <div class="field">
          <label for="password">Password</label>
          <input
            id="password"
            name="password"
            type="password"
            autocomplete="current-password"
            required
            autofocus={email !== ""}
          />
        </div>
        <p class="actions">
          <button>Sign in</button>
        </p>
      </form>
      {hasPasskeys && (
        <form
          class="card"
          method="post"
          action="/sign-in/passkey"
          data-passkey="get"
          data-options="/sign-in/passkey/options"
          hidden
        >
          <Csrf token={csrfToken} />
          <input type="hidden" name="next" value={next} />
          <input type="hidden" name={RESPONSE_FIELD} />
          <p class="actions">
            <button class="quiet">Sign in with a passkey</button>
          </p>
        </form>
      )}
      <p class="hint">
        No password yet, or forgotten? Ask the administrator of the server for a one-time link.
      </p>
    </Layout>
  );
}

/** One page, whatever the reason: who tries tokens learns nothing. */
export function LinkGonePage(): VNode {
  return (
    <Layout title="This link does not work" member={null}>
      <div class="card">
        <p>It works once, for 24 hours, and a newer link makes the earlier ones void.</p>
        <p>Ask the administrator of the server for a new one. They make it with:</p>
        <pre>signalbox desk invite NAME --email YOU</pre>
        <p>or, where you have joined before, with:</p>
        <pre>signalbox desk reset NAME YOU</pre>
        <p>
          Done already? <a href="/sign-in">Sign in</a>
        </p>
      </div>
    </Layout>
  );
}

export function LimitedPage({
  visit: { member, csrfToken },
  problem,
}: {
  visit: Visit;
  problem: string;
}): VNode {
  return (
    <Layout title="Too many attempts" member={member} csrfToken={csrfToken}>
      <Problem>{problem}</Problem>
      {member === null && (
        <p>A browser that you have signed in with lately is not held up by what others try.</p>
      )}
      <p>
        <a href={member === null ? "/sign-in" : "/account"}>Back</a>
      </p>
    </Layout>
  );
}
