/** `/audit`: who did what to the desk. */
import { type AuditListing, AuditPage } from "./page.tsx";
import { page } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import { memberPage, type MemberVisit, type Route } from "../web/visit.ts";

const PAGE = 50;

export function auditRoutes({ audit }: ConsoleServices): Route[] {
  return [
    memberPage("/audit", async (visit) =>
      page(<AuditPage visit={visit} {...await readListing(audit, visit)} />),
    ),
  ];
}

/** Cursors, not page numbers: new records move nothing from one page to another. */
async function readListing(
  audit: ConsoleServices["audit"],
  { member, url }: MemberVisit,
): Promise<AuditListing> {
  const before = readCursor(url.searchParams.get("before"));
  const found = await audit.list({ desk: member.desk, before, limit: PAGE + 1 });
  const records = found.slice(0, PAGE);
  const last = records.at(-1);
  return {
    records,
    newest: before === null ? null : "/audit",
    older: found.length <= PAGE || last === undefined ? null : `/audit?before=${last.id}`,
  };
}

/** Null for an invalid cursor: the newest page. */
function readCursor(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
