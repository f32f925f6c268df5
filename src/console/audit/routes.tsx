/** `/audit`: who did what to the desk. */
import { shorten } from "../ui/words.ts";
import { forMembers, type Route } from "../web/routes.ts";
import type { ConsoleServices } from "../web/services.ts";
import type { MemberVisit } from "../web/visit.ts";
import { type AuditListing, AuditPage } from "./page.tsx";
import { pathOf, readFilter } from "./question.ts";

const PAGE = 50;

export const auditRoutes: readonly Route[] = [
  forMembers.page("/audit", async (services, visit) => (
    <AuditPage visit={visit} {...await readListing(services, visit)} />
  )),
];

/** Cursors, not page numbers: new records move nothing from one page to another. */
async function readListing(
  { audit, members }: ConsoleServices,
  { member: { desk }, url }: MemberVisit,
): Promise<AuditListing> {
  const filter = readFilter(url.searchParams);
  const before = readCursor(url.searchParams.get("before"));
  const found = await audit.list({ desk, ...filter, before, limit: PAGE + 1 });
  const records = found.slice(0, PAGE);
  const last = records.at(-1);
  return {
    filter,
    records,
    // Long ones would make the page long.
    emails: (await members.list(desk))
      .map(({ email }) => email)
      .filter((email) => shorten(email) === email),
    newest: before === null ? null : pathOf(filter),
    older: found.length <= PAGE || last === undefined ? null : pathOf(filter, last.id),
  };
}

/** Null for an invalid cursor: the newest page. */
function readCursor(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
