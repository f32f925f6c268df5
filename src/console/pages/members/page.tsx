/** `/members`: who can use the desk's console. Another desk's member is answered like an unknown one. */
import type { VNode } from "preact";
import { checkEmail, generateToken, type Member } from "../../../domain/member/member.ts";
import { Confirm } from "../account/confirmation-form.tsx";
import { requireConfirmation, type Ways, waysOf } from "../account/confirmation.ts";
import { passkeyScripts } from "../sign-in/page.tsx";
import { seeOther } from "../../server/responses.ts";
import { forMembers, found, type Route, type Send, type Show } from "../../server/routes.ts";
import { senderOf } from "../../server/sessions/sent-forms.ts";
import type { ConsoleServices } from "../../server/services.ts";
import { authorOf, type MemberVisit, requireSession } from "../../server/visit.ts";
import { ButtonLink, CopyButton, None, Problem, QuietLink, Tag } from "../../ui/components.tsx";
import { Copy, Field, PostForm, Username } from "../../ui/forms.tsx";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Past, PastOrFuture } from "../../ui/times.tsx";
import { shorten } from "../../ui/words.ts";

const columns: readonly Column[] = [
  { name: "Member", phone: "main" },
  { name: "Access", phone: "more" },
  { name: "Signs in with" },
  { name: "Last sign-in", phone: "more", isLabelled: true },
  { name: "Joined" },
  { name: "Change", phone: "main end" },
];

const up = { path: "/members", name: "Members" };
const scriptsFor = ({ hasPasskey }: Ways) => (hasPasskey ? passkeyScripts : []);

const showInvite: Show = async (services, visit, problem) => {
  const invited = await findMember(services, visit, visit.url.searchParams.get("member"));
  const email = visit.form.get("email") ?? invited?.email ?? "";
  const ways = await waysOf(services, visit);
  return (
    <Layout title="Invite a member" visit={visit} up={up} scripts={scriptsFor(ways)}>
      <Problem>{problem}</Problem>
      <p>
        You get a link to hand over; nothing is e-mailed. The new member can do everything that you
        can: manage this desk's keys and members, and see its signals.
      </p>
      <PostForm visit={visit} class="card" action="/members/invite">
        <Copy token={generateToken()} />
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
};

/**
 * The answer to the form has the link, and no page of its own does: a thief of the session's cookie could
 * open that page first.
 */
const invite: Send = async (services, visit) => {
  const email = visit.form.get("email") ?? "";
  const { session, form } = senderOf(visit);
  // The same copy with another address is another form.
  const sender = { session, form: form === null ? null : `${form} ${email}` };
  const link = await services.links.once(sender, visit.now, async () => {
    checkEmail(email);
    await requireConfirmation(services, visit);
    await requireSession(services, visit);
    return services.members.invite(visit.member.deskId, email, authorOf(visit));
  });
  const url = `${services.ownOrigin()}/join/${link.token}`;
  const { member, expires_at, replaces_link } = link;
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
};

const showRemoval: Show = async (services, visit, problem) => {
  const member = found(await findMember(services, visit, visit.params["id"]));
  const ways = await waysOf(services, visit);
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
};

const remove: Send = async (services, visit) => {
  const member = found(await findMember(services, visit, visit.params["id"]));
  await requireConfirmation(services, visit);
  await requireSession(services, visit);
  await services.members.remove(visit.member.deskId, member.email, authorOf(visit));
  return seeOther("/members");
};

async function findMember(
  services: ConsoleServices,
  visit: MemberVisit,
  id: string | null | undefined,
): Promise<Member | undefined> {
  return (await services.members.list(visit.member.deskId)).find((member) => member.id === id);
}

export const memberRoutes: readonly Route[] = [
  forMembers.page("/members", async ({ members }, visit) => (
    <Layout
      title="Members"
      visit={visit}
      actions={<ButtonLink to="/members/invite">Invite a member</ButtonLink>}
    >
      <p class="soft">All members can see this desk's signals, and manage its keys and members.</p>
      <List
        caption="Members"
        columns={columns}
        items={await members.list(visit.member.deskId)}
        cells={(member, index) => cellsOf(member, visit, index)}
        isNamed
      />
    </Layout>
  )),
  forMembers.page("/members/invite", showInvite),
  forMembers.form("/members/invite", invite, { again: showInvite }),
  forMembers.page("/members/:id/remove", showRemoval),
  forMembers.form("/members/:id/remove", remove, { again: showRemoval }),
];

function cellsOf(member: Member, { now, member: self }: MemberVisit, index: number): VNode[] {
  const { id, email, signed_in_at, joined_at } = member;
  const isSelf = id === self.memberId;
  return [
    <>
      <bdi id={`m${index}`}>{shorten(email)}</bdi> {isSelf && <Tag>You</Tag>}
    </>,
    <Access member={member} now={now} />,
    <Means member={member} />,
    <Moment at={signed_in_at} now={now} />,
    <Moment at={joined_at} now={now} />,
    isSelf ? <a href="/account">Account</a> : <Changes member={member} index={index} />,
  ];
}

function Moment({ at, now }: { at: number | null; now: number }): VNode {
  return at === null ? <None /> : <Past at={at} now={now} />;
}

function Means({ member: { has_password, passkeys } }: { member: Member }): VNode {
  const keys = passkeys === 1 ? "passkey" : `${passkeys} passkeys`;
  const means = [...(has_password ? ["password"] : []), ...(passkeys > 0 ? [keys] : [])];
  return means.length === 0 ? <None /> : <>{means.join(", ")}</>;
}

function Access({ member, now }: { member: Member; now: number }): VNode {
  const { joined_at, link_expires_at, has_password, passkeys } = member;
  const isLocked = joined_at !== null && !has_password && passkeys === 0;
  if (isLocked) return <Tag tone="warn">Must use a link</Tag>;
  if (joined_at !== null) return <Tag tone="good">Active</Tag>;
  if (link_expires_at === null) return <Tag tone="bad">Link expired</Tag>;
  return (
    <>
      <Tag tone="warn">Invited</Tag>{" "}
      <span class="soft">
        link expires <PastOrFuture at={link_expires_at} now={now} />
      </span>
    </>
  );
}

/** Named after the address in the first cell: repeated in each, long ones would make the page long. */
function Changes({ member: { id, joined_at }, index }: { member: Member; index: number }): VNode {
  return (
    <span class="actions">
      {joined_at === null && (
        <a
          class="button quiet"
          href={`/members/invite?member=${id}`}
          id={`l${index}`}
          aria-labelledby={`l${index} m${index}`}
        >
          New link
        </a>
      )}
      <a
        class="button quiet"
        href={`/members/${id}/remove`}
        id={`r${index}`}
        aria-labelledby={`r${index} m${index}`}
      >
        Remove
      </a>
    </span>
  );
}
