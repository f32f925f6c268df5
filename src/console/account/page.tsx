/** The account page: password, passkeys and sessions. */
import type { VNode } from "preact";
import type { Account, Passkey } from "../../domain/member.ts";
import { passkeyScripts } from "../sign-in/page.tsx";
import { Facts, Problem, Tag } from "../ui/components.tsx";
import { Field, PostForm, Username } from "../ui/forms.tsx";
import { newPasswordHint } from "../ui/hints.ts";
import { Layout } from "../ui/layout.tsx";
import { Row, Table } from "../ui/table.tsx";
import { Past } from "../ui/times.tsx";
import type { Session } from "../../domain/session.ts";
import type { MemberVisit } from "../web/visit.ts";
import type { Ways } from "./confirmation.ts";
import { Confirm } from "./confirmation-form.tsx";
import { noticeIn } from "./notices.ts";

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
    <Layout
      title="Account"
      visit={visit}
      place="/account"
      scripts={canHavePasskeys ? passkeyScripts : []}
    >
      <Problem>{problem}</Problem>
      {notice !== null && (
        <p class="notice" role="status">
          {notice}
        </p>
      )}
      <section class="card">
        <h2>You</h2>
        <Facts
          facts={[
            ["Email address", email],
            ["Desk", desk],
            ["Joined", <Past at={joined_at} now={visit.now} />],
          ]}
        />
      </section>
      {!account.passkeys_required && <PasswordForm visit={visit} state={state} />}
      <Passkeys visit={visit} state={state} />
      <SessionList visit={visit} sessions={state.sessions} />
    </Layout>
  );
}

function PasswordForm({ visit, state: { account, ways } }: Shown): VNode {
  return (
    <section class="card">
      <h2>Password</h2>
      {!account.has_password && (
        <p>
          You have no password: you sign in with passkeys. Setting one lets you sign in with either.
        </p>
      )}
      <PostForm visit={visit} action="/account/password">
        <Username email={account.email} />
        <Field
          id="new"
          label="New password"
          hint={`${newPasswordHint} Every other browser is signed out.`}
          type="password"
          autocomplete="new-password"
          required
        />
        <Confirm ways={ways} verb={account.has_password ? "Change password" : "Set password"} />
      </PostForm>
    </section>
  );
}

function Passkeys({ visit, state: { passkeys, ways, canHavePasskeys } }: Shown): VNode {
  return (
    <section class="card">
      <h2>Passkeys</h2>
      {passkeys.length === 0 ? (
        <p>None yet. With a passkey, you sign in with your device's lock or a security key.</p>
      ) : (
        <PasskeyTable now={visit.now} passkeys={passkeys} />
      )}
      {canHavePasskeys ? (
        <AddPasskey visit={visit} ways={ways} />
      ) : (
        <p class="hint">
          Passkeys need a host name, and this console was opened by IP address: its administrator
          can name it with <code>--console-url</code>, such as{" "}
          <code>https://console.example.com</code>.
        </p>
      )}
    </section>
  );
}

function PasskeyTable({ now, passkeys }: { now: number; passkeys: readonly Passkey[] }): VNode {
  const columns = ["Name", "Added", "Last used", "Remove"];
  return (
    <Table caption="Your passkeys" columns={columns}>
      <tbody>
        {passkeys.map(({ id, name, created_at, last_used_at }) => {
          const path = `/account/passkeys/${id}/remove`;
          const cells = [
            <bdi>{name}</bdi>,
            <Past at={created_at} now={now} />,
            <Past at={last_used_at} now={now} />,
            <a class="button quiet" href={path} aria-label={`Remove ${name}`}>
              Remove
            </a>,
          ];
          return <Row columns={columns} cells={cells} isNamed />;
        })}
      </tbody>
    </Table>
  );
}

function AddPasskey({ visit, ways }: { visit: MemberVisit; ways: Ways }): VNode {
  return (
    <>
      <noscript>
        <p class="hint">Adding a passkey needs JavaScript.</p>
      </noscript>
      <PostForm
        visit={visit}
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
      </PostForm>
    </>
  );
}

/** The browsers in which a member is signed in, each with a button to end the session. */
function SessionList({
  visit,
  sessions,
}: {
  visit: MemberVisit;
  sessions: readonly Session[];
}): VNode {
  const columns = ["Browser", "Address", "Signed in", "Last used", "Sign out"];
  return (
    <section class="card">
      <h2>Signed in</h2>
      <Table caption="Browsers in which you are signed in" columns={columns}>
        <tbody>
          {sessions.map((session) => (
            <Row columns={columns} cells={cellsOf(session, visit)} isNamed />
          ))}
        </tbody>
      </Table>
      <PostForm visit={visit} action="/account/sign-out-everywhere">
        <p class="actions">
          <button class="quiet">Sign out everywhere else</button>
        </p>
      </PostForm>
    </section>
  );
}

function cellsOf({ id, browser, address, startedAt, seenAt }: Session, visit: MemberVisit) {
  const isOwn = id === visit.member.session.id;
  return [
    <>
      <bdi>{browser}</bdi> {isOwn && <Tag tone="good">This one</Tag>}
    </>,
    address,
    <Past at={startedAt} now={visit.now} />,
    <Past at={seenAt} now={visit.now} />,
    <PostForm visit={visit} action={isOwn ? "/sign-out" : `/account/sessions/${id}/end`}>
      <button class="quiet" aria-label={isOwn ? "Sign out here" : `Sign out ${browser}`}>
        Sign out
      </button>
    </PostForm>,
  ];
}
