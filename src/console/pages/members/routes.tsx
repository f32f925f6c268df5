/** `/members`: who can use the desk's console. Another desk's member is answered like an unknown one. */
import { checkEmail, type Member } from "../../../domain/member/member.ts";
import { requireConfirmation, waysOf } from "../account/confirmation.ts";
import { seeOther } from "../../server/responses.ts";
import {
  forManagers,
  forMembers,
  type HandleOne,
  ofOne,
  type Route,
  type Send,
  type Show,
} from "../../server/routes.ts";
import { senderOf } from "../../server/sessions/sent-forms.ts";
import type { ConsoleServices } from "../../server/services.ts";
import { authorOf, type MemberVisit, requireSession } from "../../server/visit.ts";
import { CopyButton, QuietLink } from "../../ui/components.tsx";
import { FormPage } from "../../ui/form-page.tsx";
import { Layout } from "../../ui/layout.tsx";
import { PastOrFuture } from "../../ui/times.tsx";
import { MemberListPage } from "./page.tsx";
import { readRole, roleField } from "./roles.ts";

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
        roleField(invited?.role ?? "manager"),
      ]}
      ways={await waysOf(services, visit)}
      label="Your password"
      verb="Create link"
      back="/members"
    >
      <p>You get a link to hand over; nothing is e-mailed.</p>
    </FormPage>
  );
};

/**
 * The answer to the form has the link, and no page of its own does: a thief of the session's cookie could
 * open that page first.
 */
const invite: Send = async (services, visit) => {
  const email = visit.form.get("email") ?? "";
  const role = readRole(visit.form);
  const { session, form } = senderOf(visit);
  // The same copy with another address or role is another form.
  const sender = { session, form: form === null ? null : `${form} ${role} ${email}` };
  const link = await services.links.once(sender, async () => {
    checkEmail(email);
    await requireConfirmation(services, visit);
    await requireSession(services, visit);
    return services.members.invite(visit.member.deskId, email, authorOf(visit), { role });
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

const showRole: HandleOne<Member> = async (services, visit, { id, email, role }, problem) => {
  return (
    <FormPage
      title={`Change the role of ${email}`}
      up={up}
      problem={problem}
      action={`/members/${id}/role`}
      fields={[roleField(role)]}
      ways={await waysOf(services, visit)}
      label="Your password"
      verb="Change role"
      back="/members"
    >
      <p>
        It takes effect with their next request. The <a href="/keys">keys</a> that they created keep
        working until somebody revokes them.
      </p>
    </FormPage>
  );
};

const changeRole: HandleOne<Member> = async (services, visit, { email }) => {
  const role = readRole(visit.form);
  await requireConfirmation(services, visit);
  await requireSession(services, visit);
  await services.members.setRole(visit.member.deskId, email, role, authorOf(visit));
  return seeOther("/members");
};

const showRemoval: HandleOne<Member> = async (services, visit, member, problem) => {
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

const remove: HandleOne<Member> = async (services, visit, { email }) => {
  await requireConfirmation(services, visit);
  await requireSession(services, visit);
  await services.members.remove(visit.member.deskId, email, authorOf(visit));
  return seeOther("/members");
};

async function findMember(
  services: ConsoleServices,
  visit: MemberVisit,
  id: string | null,
): Promise<Member | undefined> {
  return (await services.members.list(visit.member.deskId)).find((member) => member.id === id);
}

const ofMember = ofOne(findMember);

export const memberRoutes: readonly Route[] = [
  forMembers.page("/members", async ({ members }, { member: { deskId } }) => (
    <MemberListPage members={await members.list(deskId)} />
  )),
  forManagers.page("/members/invite", showInvite),
  forManagers.form("/members/invite", invite, { again: showInvite }),
  forManagers.page("/members/:id/role", ofMember(showRole)),
  forManagers.form("/members/:id/role", ofMember(changeRole), { again: ofMember(showRole) }),
  forManagers.page("/members/:id/remove", ofMember(showRemoval)),
  forManagers.form("/members/:id/remove", ofMember(remove), { again: ofMember(showRemoval) }),
];
