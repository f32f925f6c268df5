/** `/members`: who can use the desk's console. Another desk's member is answered like an unknown one. */
import { checkEmail, generateToken, type MadeLink, type Member } from "../../domain/member.ts";
import type { ApiKey } from "../../domain/key.ts";
import { requireConfirmation, waysOf } from "../account/confirmation.ts";
import { notFoundPage } from "../web/problems.tsx";
import { orRefusal } from "../web/refusals.ts";
import { page, seeOther } from "../web/responses.ts";
import { senderOf, SentForms } from "../web/sent-forms.ts";
import type { ConsoleServices } from "../web/services.ts";
import {
  authorOf,
  memberForm,
  memberPage,
  type MemberVisit,
  requireSession,
  type Route,
} from "../web/visit.ts";
import { InvitePage, LinkShownPage, RemovePage } from "./forms.tsx";
import { MembersPage } from "./page.tsx";

/** A reload within this time shows the same link, a later one makes another. */
const LINK_KNOWN_MS = 60_000;
/** Twice the keys that a desk may have by default: others may be in their overlap. */
const KEYS_SHOWN = 200;

export function memberRoutes(services: ConsoleServices): Route[] {
  const links = new SentForms<MadeLink>(LINK_KNOWN_MS);
  /** Answers 404 unless the member is of the visitor's desk. */
  const ofOne = (handle: HandleOne) => async (visit: MemberVisit) => {
    const members = await services.members.list(visit.member.desk);
    const found = members.find(({ id }) => id === visit.params["id"]);
    return found === undefined ? notFoundPage() : handle(services, visit, found);
  };
  return [
    memberPage("/members", async (visit) => {
      const members = await services.members.list(visit.member.desk);
      return page(<MembersPage visit={visit} members={members} />);
    }),
    memberPage("/members/invite", async (visit) => {
      const members = await services.members.list(visit.member.desk);
      const invited = members.find(({ id }) => id === visit.url.searchParams.get("member"));
      return showInvite(services, visit, invited?.email ?? "");
    }),
    memberForm("/members/invite", (visit) => invite(services, links, visit)),
    memberPage("/members/:id/remove", ofOne(showRemoval)),
    memberForm("/members/:id/remove", ofOne(remove)),
  ];
}

type HandleOne = (
  services: ConsoleServices,
  visit: MemberVisit,
  member: Member,
) => Response | Promise<Response>;

async function showInvite(
  services: ConsoleServices,
  visit: MemberVisit,
  email: string,
  problem: string | null = null,
): Promise<Response> {
  const ways = await waysOf(services, visit);
  const form = { visit, ways, problem, email, copy: generateToken() };
  return page(<InvitePage {...form} />, problem === null ? 200 : 422);
}

/**
 * The answer to the form has the link, and no page of its own does: a thief of the session's cookie could
 * open that page first.
 */
function invite(
  services: ConsoleServices,
  links: SentForms<MadeLink>,
  visit: MemberVisit,
): Promise<Response> {
  const email = visit.form.get("email") ?? "";
  const { session, form } = senderOf(visit);
  // The same copy with another address is another form.
  const sender = { session, form: form === null ? null : `${form} ${email}` };
  return orRefusal(
    async () => {
      const link = await links.once(sender, visit.now, async () => {
        checkEmail(email);
        await requireConfirmation(services, visit);
        await requireSession(services, visit);
        return services.members.invite(visit.member.desk, email, authorOf(visit));
      });
      const url = `${services.ownOrigin()}/join/${link.token}`;
      return page(<LinkShownPage visit={visit} link={link} url={url} />);
    },
    (problem) => showInvite(services, visit, email, problem),
  );
}

async function showRemoval(
  services: ConsoleServices,
  visit: MemberVisit,
  member: Member,
  problem: string | null = null,
): Promise<Response> {
  const state = {
    member,
    keys: await keysOf(services, visit, member),
    ways: await waysOf(services, visit),
    problem,
  };
  return page(<RemovePage visit={visit} {...state} />, problem === null ? 200 : 422);
}

function remove(services: ConsoleServices, visit: MemberVisit, member: Member): Promise<Response> {
  return orRefusal(
    async () => {
      await requireConfirmation(services, visit);
      await requireSession(services, visit);
      await services.members.remove(visit.member.desk, member.email, authorOf(visit));
      return seeOther("/members");
    },
    (problem) => showRemoval(services, visit, member, problem),
  );
}

/** The active keys that the member created, newest first. */
async function keysOf(
  { registry, audit }: ConsoleServices,
  { member: { desk } }: MemberVisit,
  { email }: Member,
): Promise<ApiKey[]> {
  const keys = await registry.pageKeys({ desk, state: "active", limit: KEYS_SHOWN });
  const ids = keys.map(({ id }) => id);
  const creators = await audit.creatorsOf(desk, ids);
  return keys.filter(({ id }) => creators.get(id) === email);
}
