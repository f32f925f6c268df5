/** The filters of the audit: those that are set as chips, and a form for all. */
import type { VNode } from "preact";
import { type AuditTopic, auditTopics, BY_ADMIN } from "../../domain/audit.ts";
import { Field, Select } from "../ui/forms.tsx";
import { Chip, FilterPopover, Toolbar } from "../ui/toolbar.tsx";
import { shorten } from "../ui/words.ts";
import { type AuditFilter, pathOf } from "./question.ts";

const topicNames: Record<AuditTopic, string> = {
  keys: "Keys",
  members: "Members",
  "sign-ins": "Sign-ins",
  desk: "Desk",
};

const ANY = { value: "", name: "Any" };
const admins = { value: BY_ADMIN, name: "Administrators" };
const topics = [ANY, ...auditTopics.map((value) => ({ value, name: topicNames[value] }))];

export function AuditToolbar({
  filter,
  emails,
}: {
  filter: AuditFilter;
  emails: readonly string[];
}): VNode {
  const { about, by } = filter;
  const people = [ANY, ...emails.map((email) => ({ value: email, name: email })), admins];
  return (
    <Toolbar>
      {about !== null && (
        <Chip name="About" without={pathOf({ ...filter, about: null })}>
          {topicNames[about]}
        </Chip>
      )}
      {by !== null && (
        <Chip name="By" without={pathOf({ ...filter, by: null })}>
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
