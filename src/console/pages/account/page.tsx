/** The account page: password, passkeys and sessions. */
import type { VNode } from "preact";
import type { Account, Passkey } from "../../../domain/member/member.ts";
import { roleNames } from "../members/roles.ts";
import { passkeyScripts } from "../../server/assets.ts";
import { Facts, Problem } from "../../ui/components.tsx";
import { useVisit } from "../../ui/context.ts";
import { Confirm, Field, Username, type Ways } from "../../ui/forms.tsx";
import { newPasswordHint } from "../../ui/hints.ts";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Past } from "../../ui/times.tsx";
import type { Session } from "../../../domain/member/session.ts";
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

export function AccountPage(state: AccountState): VNode {
  const { account, canHavePasskeys, problem } = state;
  const { email, role, desk, joined_at } = account;
  const { url } = useVisit();
  const notice = problem === null ? noticeIn(url) : null;
  return (
    <Layout title="Account" scripts={canHavePasskeys ? passkeyScripts : []}>
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
            ["Role", roleNames[role]],
            ["Joined", <Past at={joined_at} />],
          ]}
        />
      </Setting>
      {!account.passkeys_required && <PasswordForm {...state} />}
      <Passkeys {...state} />
      <SessionList {...state} />
    </Layout>
  );
}

function PasswordForm({ account: { has_password }, ways }: AccountState): VNode {
  const verb = has_password ? "Change password" : "Set password";
  const hint = has_password
    ? "Changing it signs you out everywhere else."
    : "You have none: you sign in with passkeys. With a password, you can sign in with either.";
  return (
    <Setting name="Password" hint={hint}>
      <FoldedForm verb={verb} action="/account/password">
        <Username />
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

function Passkeys({ passkeys, ways, canHavePasskeys }: AccountState): VNode {
  return (
    <Setting
      name="Passkeys"
      hint="With a passkey, you sign in with your device's lock or a security key."
    >
      <List
        caption="Your passkeys"
        columns={passkeyColumns}
        items={passkeys}
        empty={<p class="soft">No passkeys yet.</p>}
      />
      {canHavePasskeys ? (
        <AddPasskey ways={ways} />
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

const passkeyColumns: readonly Column<Passkey>[] = [
  { name: "Name", cell: ({ name }) => <bdi>{name}</bdi>, phone: "main", isName: true },
  {
    name: "Last used",
    cell: ({ last_used_at }) => <Past at={last_used_at} />,
    phone: "more",
    isLabelled: true,
  },
  {
    name: "Added",
    cell: ({ created_at }) => <Past at={created_at} />,
    phone: "more",
    isLabelled: true,
  },
  {
    name: "Remove",
    cell: ({ id, name }) => (
      <a class="button quiet" href={`/account/passkeys/${id}/remove`} aria-label={`Remove ${name}`}>
        Remove
      </a>
    ),
    phone: "main end",
  },
];

function AddPasskey({ ways }: { ways: Ways }): VNode {
  return (
    <>
      <noscript>
        <p class="hint">Adding a passkey needs JavaScript.</p>
      </noscript>
      <FoldedForm
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
