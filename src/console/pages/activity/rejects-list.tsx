/** The desk's rejected requests: one row per reason. */
import type { VNode } from "preact";
import type { RejectReason, Rejects } from "../../../domain/activity/activity.ts";
import type { ApiKey } from "../../../domain/key/key.ts";
import { KeyName, None, Pager, Tag, type Tone } from "../../ui/components.tsx";
import { rejectsHint } from "../../ui/hints.ts";
import { type Column, List } from "../../ui/table.tsx";
import { Past } from "../../ui/times.tsx";
import { Toolbar } from "../../ui/toolbar.tsx";
import { shorten } from "../../ui/words.ts";
import { Filters, rejectFilters } from "./filters.tsx";
import {
  describeField,
  errors,
  FIELD_CHARACTERS_MAX,
  FIELDS_SHOWN,
  LABEL_CHARACTERS_MAX,
} from "./labels.ts";
import { type ActivityQuestion, pathOf } from "./question.ts";

/** With the latest of its keys; null: a restore removed it. */
type ListedRejects = Rejects & { readonly latestKey: ApiKey | null };

export interface RejectListing {
  /** The one with the latest request first. */
  readonly reasons: readonly ListedRejects[];
  /** The cursor of the next page, if there are older ones. */
  readonly older: string | null;
}

const columns: readonly Column<ListedRejects>[] = [
  { name: "Reason", cell: (rejects) => <Reason {...rejects} />, phone: "main" },
  {
    name: "Requests",
    cell: ({ count }) => count.toLocaleString("en"),
    phone: "more",
    isNumber: true,
    isLabelled: true,
  },
  { name: "Latest", cell: ({ lastAt }) => <Past at={lastAt} />, phone: "more" },
  { name: "Key", cell: (rejects) => <Keys {...rejects} />, phone: "more" },
];

export function RejectsSection({
  question,
  listing: { reasons, older },
}: {
  question: ActivityQuestion;
  listing: RejectListing;
}): VNode {
  const narrowed = question.key === null ? "" : `?key=${question.key.id}`;
  return (
    <section id="rejects">
      <div class="section-head">
        <h2>Rejected requests</h2>
        <Toolbar>
          <Filters question={question} filters={rejectFilters(question)} name="Add filter" />
        </Toolbar>
      </div>
      <div class="section-body" data-part="rejects">
        <List
          caption="Reasons for rejected requests, latest first"
          columns={columns}
          items={reasons}
          to={({ id }) => `/activity/rejects/${id}${narrowed}`}
          empty={<Nothing question={question} />}
        />
        <Pager
          label="Pages of rejected requests"
          newest={question.before === null ? null : pathOf({ ...question, before: null })}
          older={older === null ? null : pathOf({ ...question, before: older })}
        />
      </div>
      <p class="hint">{rejectsHint}</p>
    </section>
  );
}

function Nothing({ question }: { question: ActivityQuestion }): VNode {
  const { status, field, before } = question;
  if (before !== null) return <p class="empty">There are no older reasons.</p>;
  if (status !== null || field !== null) {
    return <p class="empty">No rejected request matches these filters.</p>;
  }
  return (
    <div class="empty">
      <h3>Nothing was rejected</h3>
      <p>
        Rejected requests appear here within seconds, with the reason for each field and what the
        bot should do.
      </p>
    </div>
  );
}

export function StatusTag({ status }: Pick<RejectReason, "status">): VNode {
  return <Tag tone={toneOf(status)}>{status}</Tag>;
}

function toneOf(status: number): Tone {
  return status === 401 || status >= 500 ? "bad" : "warn";
}

/** With its status. */
export function Reason(reason: RejectReason): VNode {
  return (
    <>
      <StatusTag {...reason} /> <ReasonInBrief {...reason} />
    </>
  );
}

/** Names of fields are the client's words. */
function ReasonInBrief({ error, fields, moreFields }: RejectReason): VNode {
  if (fields === null) return <span>{errors[error].name}</span>;
  const entries = Object.entries(fields);
  const more = Math.max(0, entries.length - FIELDS_SHOWN) + moreFields;
  return (
    <span>
      {entries.slice(0, FIELDS_SHOWN).map(([name, reason], index) => (
        <>
          {index > 0 && "; "}
          <code>{shorten(name, FIELD_CHARACTERS_MAX)}</code> {describeField(name, reason)}
        </>
      ))}
      {more > 0 && <span class="soft"> and {more.toLocaleString("en")} more</span>}
    </span>
  );
}

function Keys({ keyIds, latestKey }: ListedRejects): VNode {
  if (latestKey === null) return <None />;
  const { label } = latestKey;
  return (
    <>
      <KeyName {...latestKey} label={label && shorten(label, LABEL_CHARACTERS_MAX)} />
      {keyIds.length > 1 && <span class="soft"> +{keyIds.length - 1}</span>}
    </>
  );
}
