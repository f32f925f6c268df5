/** `/members`: who can use the desk's console. Another desk's member is answered like an unknown one. */
import type { VNode } from "preact";
import { checkEmail, generateToken, type Member } from "../../domain/member.ts";
import { requireConfirmation, waysOf } from "../account/confirmation.ts";
import { seeOther } from "../web/responses.ts";
import { forMembers, found, type Route } from "../web/routes.ts";
import { senderOf } from "../web/sent-forms.ts";
import type { ConsoleServices } from "../web/services.ts";
import { authorOf, type MemberVisit, requireSession } from "../web/visit.ts";
import { InvitePage, LinkShownPage, RemovePage } from "./forms.tsx";
import { MembersPage } from "./page.tsx";

export const memberRoutes: readonly Route[] = [
  forMembers.page("/members", async (services, visit) => (
    <MembersPage visit={visit} members={await services.members.list(visit.member.desk)} />
  )),
  forMembers.page("/members/invite", showInvite),
  forMembers.form("/members/invite", invite, { again: showInvite }),
  forMembers.page("/members/:id/remove", showRemoval),
  forMembers.form("/members/:id/remove", remove, { again: showRemoval }),
];

async function showInvite(
  services: ConsoleServices,
  visit: MemberVisit,
  problem: string | null,
): Promise<VNode> {
  const invited = await findMember(services, visit, visit.url.searchParams.get("member"));
  const email = visit.form.get("email") ?? invited?.email ?? "";
  const ways = await waysOf(services, visit);
  return <InvitePage {...{ visit, ways, problem, email }} copy={generateToken()} />;
}

/**
 * The answer to the form has the link, and no page of its own does: a thief of the session's cookie could
 * open that page first.
 */
async function invite(services: ConsoleServices, visit: MemberVisit): Promise<VNode> {
  const email = visit.form.get("email") ?? "";
  const { session, form } = senderOf(visit);
  // The same copy with another address is another form.
  const sender = { session, form: form === null ? null : `${form} ${email}` };
  const link = await services.links.once(sender, visit.now, async () => {
    checkEmail(email);
    await requireConfirmation(services, visit);
    await requireSession(services, visit);
    return services.members.invite(visit.member.desk, email, authorOf(visit));
  });
  const url = `${services.ownOrigin()}/join/${link.token}`;
  return <LinkShownPage visit={visit} link={link} url={url} />;
}

async function showRemoval(
  services: ConsoleServices,
  visit: MemberVisit,
  problem: string | null,
): Promise<VNode> {
  const member = found(await findMember(services, visit, visit.params["id"]));
  const ways = await waysOf(services, visit);
  return <RemovePage {...{ visit, ways, problem, member }} />;
}

async function remove(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const member = found(await findMember(services, visit, visit.params["id"]));
  await requireConfirmation(services, visit);
  await requireSession(services, visit);
  await services.members.remove(visit.member.desk, member.email, authorOf(visit));
  return seeOther("/members");
}

async function findMember(
  services: ConsoleServices,
  visit: MemberVisit,
  id: string | null | undefined,
): Promise<Member | undefined> {
  return (await services.members.list(visit.member.desk)).find((member) => member.id === id);
}
