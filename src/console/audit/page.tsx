/** The audit, in words for people. */
import type { VNode } from "preact";
import { auditPhrases, type AuditRecord, beforeDetail } from "../../domain/audit.ts";
import { Pager } from "../ui/components.tsx";
import { Layout } from "../ui/layout.tsx";
import { type Column, Row, Table } from "../ui/table.tsx";
import { Past } from "../ui/times.tsx";
import { shorten } from "../ui/words.ts";
import type { MemberVisit } from "../web/visit.ts";
import { AuditToolbar } from "./filters.tsx";
import { type AuditFilter, pathOf } from "./question.ts";

const columns: readonly Column[] = [
  { name: "When", phone: "main end" },
  { name: "Who", phone: "main" },
  { name: "What", phone: "more" },
  { name: "From", phone: "more end" },
];

/** A sentence without its full stop. */
export function AuditPhrase({ record }: { record: AuditRecord }): VNode {
  return (
    <>
      <Actor record={record} /> <Deed record={record} />
    </>
  );
}

function Actor({ record: { actor, action, os_user } }: { record: AuditRecord }): VNode {
  if (actor !== null) return <Name text={actor} />;
  if (action === "member.sign_in_failed") return <>Somebody</>;
  if (os_user === null) return <>Administrator</>;
  return (
    <>
      Administrator (<bdi>{os_user}</bdi>)
    </>
  );
}

/** The text may be of any script and direction. */
function Name({ text }: { text: string }): VNode {
  return <bdi>{shorten(text)}</bdi>;
}

function Deed({
  record: { actor, action, subject, detail, key_id, key_label, key_last4 },
}: {
  record: AuditRecord;
}): VNode {
  return (
    <>
      {auditPhrases[action]}
      {key_id !== null && (
        <>
          {" "}
          <a href={`/keys/${key_id}`}>
            {key_label !== null && <Name text={key_label} />}
            {key_label !== null && " "}(…{key_last4})
          </a>
        </>
      )}
      {subject !== null && subject !== actor && (
        <>
          {" "}
          <Name text={subject} />
        </>
      )}
      {detail !== null && (
        <>
          {beforeDetail(action)}
          <bdi>{detail}</bdi>
        </>
      )}
    </>
  );
}

export interface AuditListing {
  readonly filter: AuditFilter;
  readonly records: readonly AuditRecord[];
  /** The addresses of the desk's members, to choose from. */
  readonly emails: readonly string[];
  /** The path of the first page; null: this is it. */
  readonly newest: string | null;
  /** The path of the next page; null: this is the last. */
  readonly older: string | null;
}

export function AuditPage({
  visit,
  filter,
  emails,
  records,
  newest,
  older,
}: AuditListing & { visit: MemberVisit }): VNode {
  return (
    <Layout title="Audit" visit={visit}>
      <AuditToolbar filter={filter} emails={emails} />
      {records.length === 0 ? (
        <div class="empty">
          <h2>{pathOf(filter) === "/audit" ? "No older entries" : "No matches yet"}</h2>
        </div>
      ) : (
        <Table
          caption="Who did what to your desk, newest first"
          columns={columns}
          className="audit"
        >
          <tbody>
            {records.map((record) => (
              <Row columns={columns} cells={cellsOf(record, visit.now)} />
            ))}
          </tbody>
        </Table>
      )}
      <Pager label="Pages of the audit" newest={newest} older={older} />
    </Layout>
  );
}

function cellsOf(record: AuditRecord, now: number): VNode[] {
  return [
    <Past at={record.at} now={now} />,
    <Actor record={record} />,
    <Deed record={record} />,
    record.client === null ? <span class="soft">command line</span> : <>{record.client}</>,
  ];
}
