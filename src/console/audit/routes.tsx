/** `/audit`: who did what to the desk. */
import { type AuditListing, AuditPage } from "./page.tsx";
import { page } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import { memberPage, type MemberVisit, type Route } from "../web/visit.ts";

const PAGE = 50;
/** Cursors in the address. */
const WAY_MAX = 200;

export function auditRoutes({ audit }: ConsoleServices): Route[] {
  return [
    memberPage("/audit", async (visit) =>
      page(<AuditPage visit={visit} {...await readListing(audit, visit)} />),
    ),
  ];
}

/** Cursors, not numbers of pages: what is written meanwhile moves nothing from one page to another. */
async function readListing(
  audit: ConsoleServices["audit"],
  { member, url }: MemberVisit,
): Promise<AuditListing> {
  const before = readCursor(url.searchParams.get("before"));
  const way = readWay(url.searchParams.get("way"));
  const found = await audit.list({ desk: member.desk, before, limit: PAGE + 1 });
  const records = found.slice(0, PAGE);
  const last = records.at(-1);
  const older =
    found.length <= PAGE || last === undefined
      ? null
      : pathOf(last.id, before === null ? [] : [...way, before]);
  const newer = before === null ? null : pathOf(way.at(-1) ?? null, way.slice(0, -1));
  return { records, newer, older };
}

/** `way`: the cursors of the pages that the reader came through, for "Newer". */
function pathOf(before: number | null, way: readonly number[]): string {
  if (before === null) return "/audit";
  const back = way.length === 0 ? "" : `&way=${way.slice(-WAY_MAX).join(".")}`;
  return `/audit?before=${before}${back}`;
}

function readWay(text: string | null): number[] {
  const cursors = (text ?? "").split(".").map(readCursor);
  return cursors.filter((cursor) => cursor !== null);
}

/** Null for an invalid cursor: the newest page. */
function readCursor(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
