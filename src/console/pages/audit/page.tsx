/** `/audit`: who did what to the desk. */
import { type AuditLine, auditLines } from "../../../domain/audit/audit-lines.ts";
import { type AuditTopic, auditTopics, BY_ADMIN } from "../../../domain/audit/audit.ts";
import { redactKeys } from "../../../domain/key/key.ts";
import { EMAIL_CHARACTERS_MAX } from "../../../domain/member/member.ts";
import { linkTo } from "../../server/links.ts";
import { forMembers, type Route } from "../../server/routes.ts";
import { Pager } from "../../ui/components.tsx";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Past } from "../../ui/times.tsx";
import { type Filter, FilterChips, FilterForm, Toolbar } from "../../ui/toolbar.tsx";
import { shorten } from "../../ui/words.ts";
import { Actor, Deed } from "./phrase.tsx";

const PATH = "/audit";
/** Lines, and the entries that are looked at to fill them. */
const PAGE = 50;
const ENTRIES = 10 * PAGE;

const columns: readonly Column<AuditLine>[] = [
  { name: "When", cell: ({ record }) => <Past at={record.at} />, phone: "main end" },
  { name: "Who", cell: ({ record }) => <Actor record={record} />, phone: "main" },
  {
    name: "What",
    cell: ({ record, count }) => (
      <>
        <Deed record={record} />
        {count > 1 && ` (${count} times)`}
      </>
    ),
    phone: "more",
  },
  {
    name: "From",
    cell: ({ record }) => record.client ?? <span class="soft">command line</span>,
    phone: "more end",
  },
];

export const auditRoutes: readonly Route[] = [
  // Cursors, not page numbers: new records move nothing from one page to another.
  forMembers.page(PATH, async ({ audit, members }, { member, url: { searchParams } }) => {
    const { deskId: desk } = member;
    const asked = readFilter(searchParams);
    const before = readCursor(searchParams.get("before"));
    const found = await audit.list({ desk, ...asked, before, limit: ENTRIES + 1 });
    const all = auditLines(found.slice(0, ENTRIES));
    const lines = all.slice(0, PAGE);
    const hasMore = all.length > PAGE || found.length > ENTRIES;
    const emails = (await members.list(desk)).map(({ email }) => email);
    const filters = filtersOf(asked, emails);
    return (
      <Layout title="Audit">
        <Toolbar>
          <FilterChips path={PATH} filters={filters} />
          <FilterForm path={PATH} filters={filters} name="Add filter" />
        </Toolbar>
        <List
          caption="Who did what to your desk, newest first"
          className="audit"
          columns={columns}
          items={lines}
          empty={
            <div class="empty">
              <h2>{linkTo(PATH, asked) === PATH ? "No older entries" : "No matches yet"}</h2>
            </div>
          }
        />
        <Pager
          label="Pages of the audit"
          newest={before === null ? null : linkTo(PATH, asked)}
          older={hasMore ? linkTo(PATH, { ...asked, before: lines.at(-1)?.oldestId }) : null}
        />
      </Layout>
    );
  }),
];

type Asked = {
  readonly about: AuditTopic | null;
  /** See `AuditPage.by`. */
  readonly by: string | null;
};

/** Leaves out what it does not know. */
function readFilter(parameters: URLSearchParams): Asked {
  const by = parameters.get("by") ?? "";
  return {
    about: auditTopics.find((topic) => topic === parameters.get("about")) ?? null,
    // Longer than any address, it matches nothing.
    by: by === "" ? null : shorten(redactKeys(by), EMAIL_CHARACTERS_MAX),
  };
}

/** Null for an invalid cursor: the newest page. */
function readCursor(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

const topicNames: Record<AuditTopic, string> = {
  keys: "Keys",
  members: "Members",
  "sign-ins": "Sign-ins",
  desk: "Desk",
};

const ANY = { value: "", name: "Any" };
const admins = { value: BY_ADMIN, name: "Administrators" };

function filtersOf({ about, by }: Asked, emails: readonly string[]): Filter[] {
  const topics = auditTopics.map((value) => ({ value, name: topicNames[value] }));
  // Long ones would make the page long.
  const people = emails
    .filter((email) => shorten(email) === email)
    .map((email) => ({ value: email, name: email }));
  return [
    {
      id: "about",
      chip: "About",
      value: about,
      shown: about !== null && topicNames[about],
      field: { label: "About", options: [ANY, ...topics] },
    },
    {
      id: "by",
      chip: "By",
      value: by,
      shown: by === BY_ADMIN ? admins.name : shorten(by ?? ""),
      field: { label: "By", options: [ANY, ...people, admins] },
    },
  ];
}
