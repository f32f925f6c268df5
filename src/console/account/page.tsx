/** What members see of themselves. */
import type { VNode } from "preact";
import type { Account, Passkey } from "../../domain/member.ts";
import { PASSWORD_CHARACTERS_MIN } from "../../domain/password.ts";
import type { Ways } from "./confirmation.ts";
import type { Session } from "../web/sessions.ts";
import type { MemberVisit } from "../web/visit.ts";
import { Confirm } from "./confirmation-form.tsx";
import { Csrf, Layout, Problem } from "../ui/layout.tsx";
import { Past } from "../ui/moment.tsx";
import { SessionList } from "./session-list.tsx";
import { passkeyScripts } from "../sign-in/page.tsx";

/** What was done before this page: it comes as a word in the address, and is told in these only. */
const notices: Readonly<Record<string, string>> = {
  password: "The password is changed, and every other browser is signed out.",
  "password-set": "The password is set, and every other browser is signed out.",
  passkey: "The passkey is added: you can sign in with it from now on.",
  removed: "The passkey is removed, and every browser that signed in with it is signed out.",
  ended: "That browser is signed out.",
  elsewhere: "Every other browser is signed out.",
};

export interface AccountState {
  readonly account: Account;
  readonly passkeys: readonly Passkey[];
  readonly sessions: readonly Session[];
  readonly ways: Ways;
  readonly canHavePasskeys: boolean;
  readonly problem: string | null;
}

export function AccountPage({ visit, state }: { visit: MemberVisit; state: AccountState }): VNode {
  const { account, canHavePasskeys, problem } = state;
  const notice = problem === null ? notices[visit.url.searchParams.get("done") ?? ""] : undefined;
  return (
    <Layout
      title="Account"
      member={visit.member}
      csrfToken={visit.csrfToken}
      place="/account"
      scripts={canHavePasskeys ? passkeyScripts : []}
    >
      {problem !== null && <Problem>{problem}</Problem>}
      {notice !== undefined && (
        <p class="notice" role="status">
          {notice}
        </p>
      )}
      <section class="card">
        <h2>You</h2>
        <dl>
          <dt>Email address</dt>
          <dd>{account.email}</dd>
          <dt>Desk</dt>
          <dd>{account.desk}</dd>
          <dt>Joined</dt>
          <dd>
            <Past at={account.joined_at} now={visit.now} />
          </dd>
        </dl>
      </section>
      {!account.passkeys_required && <PasswordForm visit={visit} state={state} />}
      <Passkeys visit={visit} state={state} />
      <SessionList visit={visit} sessions={state.sessions} />
    </Layout>
  );
}

function PasswordForm({
  visit,
  state: { account, ways },
}: {
  visit: MemberVisit;
  state: AccountState;
}): VNode {
  return (
    <section class="card">
      <h2>Password</h2>
      {!account.has_password && (
        <p>You have none: you sign in with passkeys. Setting one lets you sign in with either.</p>
      )}
      <form method="post" action="/account/password">
        <Csrf token={visit.csrfToken} />
        <input type="text" name="email" autocomplete="username" value={account.email} hidden />
        <div class="field">
          <label for="new">New password</label>
          <input
            id="new"
            name="new"
            type="password"
            autocomplete="new-password"
            aria-describedby="new-hint"
            required
          />
          <p class="hint" id="new-hint">
            At least {PASSWORD_CHARACTERS_MIN} characters, such as four or five random words. Every
            other browser is signed out.
          </p>
        </div>
        <Confirm
          ways={ways}
          verb={account.has_password ? "Change the password" : "Set a password"}
        />
      </form>
    </section>
  );
}

function Passkeys({
  visit,
  state: { passkeys, ways, canHavePasskeys },
}: {
  visit: MemberVisit;
  state: AccountState;
}): VNode {
  return (
    <section class="card">
      <h2>Passkeys</h2>
      {passkeys.length === 0 ? (
        <p>None yet. With a passkey, you sign in with your device's lock or a security key.</p>
      ) : (
        <PasskeyTable visit={visit} passkeys={passkeys} />
      )}
      {canHavePasskeys ? (
        <AddPasskey visit={visit} ways={ways} />
      ) : (
        <p class="hint">
          Passkeys need a name, and this console is reached by an address: its administrator can
          give it one with <code>--console-url</code>, such as{" "}
          <code>https://console.example.com</code>.
        </p>
      )}
    </section>
  );
}

function PasskeyTable({
  visit,
  passkeys,
}: {
  visit: MemberVisit;
  passkeys: readonly Passkey[];
}): VNode {
  return (
    <div class="scroll">
      <table>
        <caption>Your passkeys</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Added</th>
            <th scope="col">Last used</th>
            <th scope="col">Remove</th>
          </tr>
        </thead>
        <tbody>
          {passkeys.map(({ id, name, created_at, last_used_at }) => (
            <tr>
              <th scope="row">
                <bdi>{name}</bdi>
              </th>
              <td data-label="Added">
                <Past at={created_at} now={visit.now} />
              </td>
              <td data-label="Last used">
                <Past at={last_used_at} now={visit.now} />
              </td>
              <td data-label="">
                <a
                  class="button quiet"
                  href={`/account/passkeys/${id}/remove`}
                  aria-label={`Remove ${name}`}
                >
                  Remove
                </a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function AddPasskey({ visit, ways }: { visit: MemberVisit; ways: Ways }): VNode {
  return (
    <>
      <noscript>
        <p class="hint">Adding a passkey needs JavaScript.</p>
      </noscript>
      <form
        method="post"
        action="/account/passkeys"
        data-passkey="create"
        data-options="/account/passkeys/options"
        hidden
      >
        <Csrf token={visit.csrfToken} />
        <div class="field">
          <label for="name">Name</label>
          <input
            id="name"
            name="name"
            type="text"
            autocomplete="off"
            aria-describedby="name-hint"
            required
          />
          <p class="hint" id="name-hint">
            So that you know it again, such as “Laptop”.
          </p>
        </div>
        <Confirm ways={ways} id="current-passkey" verb="Add a passkey" />
      </form>
    </>
  );
}
