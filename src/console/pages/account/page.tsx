/** The account page: password, passkeys and sessions. */
import type { VNode } from "preact";
import type { Account, Passkey } from "../../../domain/member/member.ts";
import { passkeyScripts } from "../sign-in/page.tsx";
import { Facts, Problem } from "../../ui/components.tsx";
import { Field, Username } from "../../ui/forms.tsx";
import { newPasswordHint } from "../../ui/hints.ts";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Past } from "../../ui/times.tsx";
import type { Session } from "../../../domain/member/session.ts";
import type { MemberVisit } from "../../server/visit.ts";
import type { Ways } from "./confirmation.ts";
import { Confirm } from "./confirmation-form.tsx";
import { noticeIn } from "./notices.ts";
import { SessionList } from "./session-list.tsx";
import { FoldedForm, Setting } from "./setting.tsx";

interface AccountState {
  readonly account: Account;
  readonly passkeys: readonly Passkey[];
  readonly sessions: readonly Session[];
  readonly ways: Ways;
  readonly canHavePasskeys: boolean;
  readonly problem: string | null;
}

interface Shown {
  readonly visit: MemberVisit;
  readonly state: AccountState;
}

export function AccountPage({ visit, state }: Shown): VNode {
  const { account, canHavePasskeys, problem } = state;
  const { email, desk, joined_at } = account;
  const notice = problem === null ? noticeIn(visit.url) : null;
  return (
    <Layout title="Account" visit={visit} scripts={canHavePasskeys ? passkeyScripts : []}>
      <Problem>{problem}</Problem>
      {notice !== null && (
        <p class="notice good" role="status">
          {notice}
        </p>
      )}
      <Setting name="You">
        <Facts
          facts={[
            ["Email address", email],
            ["Desk", desk],
            ["Joined", <Past at={joined_at} now={visit.now} />],
          ]}
        />
      </Setting>
      {!account.passkeys_required && <PasswordForm visit={visit} state={state} />}
      <Passkeys visit={visit} state={state} />
      <SessionList visit={visit} sessions={state.sessions} />
    </Layout>
  );
}

function PasswordForm({ visit, state: { account, ways } }: Shown): VNode {
  const { has_password, email } = account;
  const verb = has_password ? "Change password" : "Set password";
  const hint = has_password
    ? "Changing it signs you out everywhere else."
    : "You have none: you sign in with passkeys. With a password, you can sign in with either.";
  return (
    <Setting name="Password" hint={hint}>
      <FoldedForm visit={visit} verb={verb} action="/account/password">
        <Username email={email} />
        <Field
          id="new"
          label="New password"
          hint={newPasswordHint}
          type="password"
          autocomplete="new-password"
          required
        />
        <Confirm ways={ways} verb={verb} />
      </FoldedForm>
    </Setting>
  );
}

function Passkeys({ visit, state: { passkeys, ways, canHavePasskeys } }: Shown): VNode {
  return (
    <Setting
      name="Passkeys"
      hint="With a passkey, you sign in with your device's lock or a security key."
    >
      <List
        caption="Your passkeys"
        columns={passkeyColumns}
        items={passkeys}
        cells={({ id, name, created_at, last_used_at }) => [
          <bdi>{name}</bdi>,
          <Past at={last_used_at} now={visit.now} />,
          <Past at={created_at} now={visit.now} />,
          <a
            class="button quiet"
            href={`/account/passkeys/${id}/remove`}
            aria-label={`Remove ${name}`}
          >
            Remove
          </a>,
        ]}
        isNamed
        empty={<p class="soft">No passkeys yet.</p>}
      />
      {canHavePasskeys ? (
        <AddPasskey visit={visit} ways={ways} />
      ) : (
        <p class="hint">
          Passkeys need a host name, and this console was opened by IP address: its administrator
          can name it with <code>--console-url</code>, such as{" "}
          <code>https://console.example.com</code>.
        </p>
      )}
    </Setting>
  );
}

const passkeyColumns: readonly Column[] = [
  { name: "Name", phone: "main" },
  { name: "Last used", phone: "more", isLabelled: true },
  { name: "Added", phone: "more", isLabelled: true },
  { name: "Remove", phone: "main end" },
];

function AddPasskey({ visit, ways }: { visit: MemberVisit; ways: Ways }): VNode {
  return (
    <>
      <noscript>
        <p class="hint">Adding a passkey needs JavaScript.</p>
      </noscript>
      <FoldedForm
        visit={visit}
        verb="Add passkey"
        action="/account/passkeys"
        data-passkey="create"
        data-options="/account/passkeys/options"
        hidden
      >
        <Field
          id="name"
          label="Name"
          hint="To recognize it later, such as “Laptop”."
          type="text"
          autocomplete="off"
          required
        />
        <Confirm ways={ways} id="current-passkey" verb="Add passkey" />
      </FoldedForm>
    </>
  );
}
