/** The forms that invite and remove a member, and the page that shows a one-time link. */
import type { VNode } from "preact";
import type { MadeLink, Member } from "../../domain/member.ts";
import type { Ways } from "../account/confirmation.ts";
import { Confirm } from "../account/confirmation-form.tsx";
import { passkeyScripts } from "../sign-in/page.tsx";
import { CopyButton, Problem, QuietLink } from "../ui/components.tsx";
import { Copy, Field, PostForm, Username } from "../ui/forms.tsx";
import { Layout } from "../ui/layout.tsx";
import { PastOrFuture } from "../ui/times.tsx";
import type { MemberVisit } from "../web/visit.ts";

interface FormPage {
  readonly visit: MemberVisit;
  readonly ways: Ways;
  readonly problem: string | null;
}

const up = { path: "/members", name: "Members" };
const scriptsFor = ({ hasPasskey }: Ways) => (hasPasskey ? passkeyScripts : []);

export function InvitePage({
  visit,
  ways,
  problem,
  email,
  copy,
}: FormPage & { email: string; copy: string }): VNode {
  return (
    <Layout title="Invite a member" visit={visit} up={up} scripts={scriptsFor(ways)}>
      <Problem>{problem}</Problem>
      <p>
        You get a link to hand over; nothing is e-mailed. The new member can do everything that you
        can: manage this desk's keys and members, and see its signals.
      </p>
      <PostForm visit={visit} class="card" action="/members/invite">
        <Copy token={copy} />
        <Field
          id="email"
          label="Email address of the new member"
          hint="The name they sign in with. If they have an open link already, the new one replaces it."
          type="text"
          inputmode="email"
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          value={email}
          required
        />
        <Username email={visit.member.email} />
        <Confirm ways={ways} label="Your password" verb="Create link" back="/members" />
      </PostForm>
    </Layout>
  );
}

export function LinkShownPage({
  visit,
  link: { member, expires_at, replaces_link },
  url,
}: {
  visit: MemberVisit;
  link: MadeLink;
  url: string;
}): VNode {
  return (
    <Layout title="One-time link" visit={visit} up={up}>
      <p class="notice">
        This link is shown only once. Send it in private: the first person to open it becomes{" "}
        <bdi>
          <strong>{member.email}</strong>
        </bdi>
        .
      </p>
      <section class="card">
        <p class="secret">
          <code id="link">{url}</code>
        </p>
        <p>
          It works once, and expires <PastOrFuture at={expires_at} now={visit.now} />.
          {replaces_link && " The earlier link no longer works."}
        </p>
        <p class="actions">
          <CopyButton of="link" isMain>
            Copy link
          </CopyButton>
        </p>
      </section>
      <p class="actions">
        <QuietLink to="/members">I've saved it</QuietLink>
      </p>
    </Layout>
  );
}

export function RemovePage({ visit, ways, problem, member }: FormPage & { member: Member }): VNode {
  const { id, email, joined_at } = member;
  return (
    <Layout title={`Remove ${email}`} visit={visit} up={up} scripts={scriptsFor(ways)}>
      <Problem>{problem}</Problem>
      <p>
        {joined_at === null
          ? "The invitation's link stops working at once."
          : "Their sessions end at once, and they can no longer sign in."}{" "}
        The address can be invited again. The <a href="/keys">keys</a> that they created keep
        working until somebody revokes them.
      </p>
      <PostForm visit={visit} class="card" action={`/members/${id}/remove`}>
        <Username email={visit.member.email} />
        <Confirm ways={ways} label="Your password" verb="Remove member" isDanger back="/members" />
      </PostForm>
    </Layout>
  );
}
