/** `/audit`: who did what to the desk. */
import { type AuditLine, auditLines } from "../../../domain/audit/audit-lines.ts";
import { type AuditTopic, auditTopics, BY_ADMIN } from "../../../domain/audit/audit.ts";
import { redactKeys } from "../../../domain/key/key.ts";
import { EMAIL_CHARACTERS_MAX } from "../../../domain/member/member.ts";
import { linkTo } from "../../server/links.ts";
import { forMembers, type Route } from "../../server/routes.ts";
import { Pager } from "../../ui/components.tsx";
import { Field, Select } from "../../ui/forms.tsx";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Past } from "../../ui/times.tsx";
import { Chip, FilterPopover, Toolbar } from "../../ui/toolbar.tsx";
import { shorten } from "../../ui/words.ts";
import { Actor, Deed } from "./phrase.tsx";

/** Lines, and the entries that are looked at to fill them. */
const PAGE = 50;
const ENTRIES = 10 * PAGE;

const columns: readonly Column[] = [
  { name: "When", phone: "main end" },
  { name: "Who", phone: "main" },
  { name: "What", phone: "more" },
  { name: "From", phone: "more end" },
];

export const auditRoutes: readonly Route[] = [
  // Cursors, not page numbers: new records move nothing from one page to another.
  forMembers.page("/audit", async ({ audit, members }, visit) => {
    const { deskId: desk } = visit.member;
    const filter = readFilter(visit.url.searchParams);
    const before = readCursor(visit.url.searchParams.get("before"));
    const found = await audit.list({ desk, ...filter, before, limit: ENTRIES + 1 });
    const all = auditLines(found.slice(0, ENTRIES));
    const lines = all.slice(0, PAGE);
    const hasMore = all.length > PAGE || found.length > ENTRIES;
    const emails = (await members.list(desk)).map(({ email }) => email);
    return (
      <Layout title="Audit" visit={visit}>
        <Filters filter={filter} emails={emails} />
        <List
          caption="Who did what to your desk, newest first"
          className="audit"
          columns={columns}
          items={lines}
          cells={(line) => cellsOf(line, visit.now)}
          empty={
            <div class="empty">
              <h2>{pathOf(filter) === "/audit" ? "No older entries" : "No matches yet"}</h2>
            </div>
          }
        />
        <Pager
          label="Pages of the audit"
          newest={before === null ? null : pathOf(filter)}
          older={hasMore ? pathOf(filter, lines.at(-1)?.oldestId) : null}
        />
      </Layout>
    );
  }),
];

function cellsOf({ record, count }: AuditLine, now: number) {
  return [
    <Past at={record.at} now={now} />,
    <Actor record={record} />,
    <>
      <Deed record={record} />
      {count > 1 && ` (${count} times)`}
    </>,
    record.client ?? <span class="soft">command line</span>,
  ];
}

interface Filter {
  readonly about: AuditTopic | null;
  /** See `AuditPage.by`. */
  readonly by: string | null;
}

/** Leaves out what it does not know. */
function readFilter(parameters: URLSearchParams): Filter {
  const about = parameters.get("about");
  const by = parameters.get("by") ?? "";
  return {
    about: auditTopics.find((topic) => topic === about) ?? null,
    // Longer than any address, it matches nothing.
    by: by === "" ? null : shorten(redactKeys(by), EMAIL_CHARACTERS_MAX),
  };
}

/** Null for an invalid cursor: the newest page. */
function readCursor(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function pathOf({ about, by }: Filter, before?: number): string {
  return linkTo("/audit", { about, by, before });
}

const topicNames: Record<AuditTopic, string> = {
  keys: "Keys",
  members: "Members",
  "sign-ins": "Sign-ins",
  desk: "Desk",
};

const ANY = { value: "", name: "Any" };
const admins = { value: BY_ADMIN, name: "Administrators" };
const topics = [ANY, ...auditTopics.map((value) => ({ value, name: topicNames[value] }))];

/** Those that are set as chips, and a form for all. */
function Filters({ filter, emails }: { filter: Filter; emails: readonly string[] }) {
  const { about, by } = filter;
  // Long ones would make the page long.
  const short = emails.filter((email) => shorten(email) === email);
  const people = [ANY, ...short.map((email) => ({ value: email, name: email })), admins];
  return (
    <Toolbar>
      {about !== null && (
        <Chip name="About" without={pathOf({ about: null, by })}>
          {topicNames[about]}
        </Chip>
      )}
      {by !== null && (
        <Chip name="By" without={pathOf({ about, by: null })}>
          {by === BY_ADMIN ? admins.name : shorten(by)}
        </Chip>
      )}
      <FilterPopover name="Add filter">
        <form class="filter" method="get" action="/audit">
          <Field id="about" label="About">
            <Select id="about" options={topics} value={about ?? ""} />
          </Field>
          <Field id="by" label="By">
            <Select id="by" options={people} value={by ?? ""} />
          </Field>
          <button>Apply</button>
        </form>
      </FilterPopover>
    </Toolbar>
  );
}
