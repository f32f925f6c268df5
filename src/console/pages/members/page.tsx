/** `/members`: who can use the desk's console. Another desk's member is answered like an unknown one. */
import type { VNode } from "preact";
import { checkEmail, type Member } from "../../../domain/member/member.ts";
import { requireConfirmation, waysOf } from "../account/confirmation.ts";
import { seeOther } from "../../server/responses.ts";
import { forMembers, found, type Route, type Send, type Show } from "../../server/routes.ts";
import { senderOf } from "../../server/sessions/sent-forms.ts";
import type { ConsoleServices } from "../../server/services.ts";
import { authorOf, type MemberVisit, requireSession } from "../../server/visit.ts";
import { ButtonLink, CopyButton, None, QuietLink, Tag } from "../../ui/components.tsx";
import { useMember } from "../../ui/context.ts";
import { FormPage } from "../../ui/form-page.tsx";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Past, PastOrFuture } from "../../ui/times.tsx";
import { shorten } from "../../ui/words.ts";

const up = { path: "/members", name: "Members" };

const showInvite: Show = async (services, visit, problem) => {
  const invited = await findMember(services, visit, visit.url.searchParams.get("member"));
  return (
    <FormPage
      title="Invite a member"
      up={up}
      problem={problem}
      action="/members/invite"
      isSentOnce
      fields={[
        {
          id: "email",
          label: "Email address of the new member",
          hint: "The name they sign in with. If they have an open link already, the new one replaces it.",
          type: "text",
          inputmode: "email",
          autocomplete: "off",
          autocapitalize: "none",
          spellcheck: false,
          value: invited?.email,
          required: true,
        },
      ]}
      ways={await waysOf(services, visit)}
      label="Your password"
      verb="Create link"
      back="/members"
    >
      <p>
        You get a link to hand over; nothing is e-mailed. The new member can do everything that you
        can: manage this desk's keys and members, and see its signals.
      </p>
    </FormPage>
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
  const link = await services.links.once(sender, async () => {
    checkEmail(email);
    await requireConfirmation(services, visit);
    await requireSession(services, visit);
    return services.members.invite(visit.member.deskId, email, authorOf(visit));
  });
  const url = `${services.ownOrigin()}/join/${link.token}`;
  const { member, expires_at, replaces_link } = link;
  return (
    <Layout title="One-time link" up={up}>
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
          It works once, and expires <PastOrFuture at={expires_at} />.
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
  const { id, email, joined_at } = member;
  return (
    <FormPage
      title={`Remove ${email}`}
      up={up}
      problem={problem}
      action={`/members/${id}/remove`}
      ways={await waysOf(services, visit)}
      label="Your password"
      verb="Remove member"
      back="/members"
      isDanger
    >
      <p>
        {joined_at === null
          ? "The invitation's link stops working at once."
          : "Their sessions end at once, and they can no longer sign in."}{" "}
        The address can be invited again. The <a href="/keys">keys</a> that they created keep
        working until somebody revokes them.
      </p>
    </FormPage>
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

const columns: readonly Column<Member>[] = [
  {
    name: "Member",
    cell: (member, index) => (
      <>
        <bdi id={`m${index}`}>{shorten(member.email)}</bdi> <YouTag {...member} />
      </>
    ),
    phone: "main",
    isName: true,
  },
  { name: "Access", cell: Access, phone: "more" },
  { name: "Signs in with", cell: Means },
  {
    name: "Last sign-in",
    cell: ({ signed_in_at }) => (signed_in_at === null ? <None /> : <Past at={signed_in_at} />),
    phone: "more",
    isLabelled: true,
  },
  {
    name: "Joined",
    cell: ({ joined_at }) => (joined_at === null ? <None /> : <Past at={joined_at} />),
  },
  {
    name: "Change",
    cell: (member, index) => <Changes member={member} index={index} />,
    phone: "main end",
  },
];

export const memberRoutes: readonly Route[] = [
  forMembers.page("/members", async ({ members }, { member: { deskId } }) => (
    <Layout title="Members" actions={<ButtonLink to="/members/invite">Invite a member</ButtonLink>}>
      <p class="soft">All members can see this desk's signals, and manage its keys and members.</p>
      <List caption="Members" columns={columns} items={await members.list(deskId)} />
    </Layout>
  )),
  forMembers.page("/members/invite", showInvite),
  forMembers.form("/members/invite", invite, { again: showInvite }),
  forMembers.page("/members/:id/remove", showRemoval),
  forMembers.form("/members/:id/remove", remove, { again: showRemoval }),
];

function YouTag({ id }: Member): VNode | null {
  return id === useMember().memberId ? <Tag>You</Tag> : null;
}

function Means({ has_password, passkeys }: Member): VNode {
  const keys = passkeys === 1 ? "passkey" : `${passkeys} passkeys`;
  const means = [...(has_password ? ["password"] : []), ...(passkeys > 0 ? [keys] : [])];
  return means.length === 0 ? <None /> : <>{means.join(", ")}</>;
}

function Access({ joined_at, link_expires_at, has_password, passkeys }: Member): VNode {
  const isLocked = joined_at !== null && !has_password && passkeys === 0;
  if (isLocked) return <Tag tone="warn">Must use a link</Tag>;
  if (joined_at !== null) return <Tag tone="good">Active</Tag>;
  if (link_expires_at === null) return <Tag tone="bad">Link expired</Tag>;
  return (
    <>
      <Tag tone="warn">Invited</Tag>{" "}
      <span class="soft">
        link expires <PastOrFuture at={link_expires_at} />
      </span>
    </>
  );
}

/** Named after the address in the first cell: repeated in each, long ones would make the page long. */
function Changes({ member: { id, joined_at }, index }: { member: Member; index: number }): VNode {
  if (id === useMember().memberId) return <a href="/account">Account</a>;
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
