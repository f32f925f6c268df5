/** The audit, in words for people. */
import type { VNode } from "preact";
import { auditPhrases, type AuditRecord } from "../../domain/audit.ts";
import { Pager } from "../ui/components.tsx";
import { Layout } from "../ui/layout.tsx";
import { Row, Table } from "../ui/table.tsx";
import { Past } from "../ui/times.tsx";
import type { MemberVisit } from "../web/visit.ts";

const columns = ["When", "What", "From"];

/** A sentence without its full stop. */
export function AuditPhrase({ record }: { record: AuditRecord }): VNode {
  const { actor, subject, detail, key_id, key_label, key_last4 } = record;
  return (
    <>
      <Actor record={record} /> {auditPhrases[record.action]}
      {key_id !== null && (
        <>
          {" "}
          <a href={`/keys/${key_id}`}>
            {key_label !== null && <bdi>{key_label}</bdi>}
            {key_label !== null && " "}(…{key_last4})
          </a>
        </>
      )}
      {subject !== null && subject !== actor && (
        <>
          {" "}
          <bdi>{subject}</bdi>
        </>
      )}
      {detail !== null && (
        <>
          : <bdi>{detail}</bdi>
        </>
      )}
    </>
  );
}

function Actor({ record: { actor, action, os_user } }: { record: AuditRecord }): VNode {
  if (actor !== null) return <bdi>{actor}</bdi>;
  if (action === "member.sign_in_failed") return <>Somebody</>;
  return (
    <>
      An administrator
      {os_user !== null && (
        <>
          {" "}
          (<bdi>{os_user}</bdi>)
        </>
      )}
      , on the command line,
    </>
  );
}

export interface AuditListing {
  readonly records: readonly AuditRecord[];
  /** The path of the first page; null: this is it. */
  readonly newest: string | null;
  /** The path of the next page; null: this is the last. */
  readonly older: string | null;
}

export function AuditPage({
  visit,
  records,
  newest,
  older,
}: AuditListing & { visit: MemberVisit }): VNode {
  return (
    <Layout title="Audit" visit={visit} place="/audit">
      <p>Who did what to your desk, its keys and its members, newest first.</p>
      {records.length === 0 ? (
        <p class="empty">There are no older entries.</p>
      ) : (
        <Table caption="Audit" columns={columns}>
          <tbody>
            {records.map((record) => {
              const phrase = <AuditPhrase record={record} />;
              const when = <Past at={record.at} now={visit.now} />;
              return <Row columns={columns} cells={[when, phrase, record.client ?? "–"]} />;
            })}
          </tbody>
        </Table>
      )}
      <Pager label="Pages of the audit" newest={newest} older={older} />
    </Layout>
  );
}
