/** The audit, in words for people. */
import type { VNode } from "preact";
import { auditPhrases, type AuditRecord } from "../../domain/audit.ts";
import type { MemberVisit } from "../web/visit.ts";
import { Layout } from "../ui/layout.tsx";
import { Past } from "../ui/moment.tsx";

/** A sentence without its full stop. */
export function AuditPhrase({ record }: { record: AuditRecord }): VNode {
  const { subject, detail, key_id, key_label, key_last4 } = record;
  const isAnother = subject !== null && subject !== record.actor;
  return (
    <>
      <Actor record={record} /> {auditPhrases[record.action]}
      {key_id !== null && (
        <>
          {" "}
          <a href={`/keys/${key_id}`}>
            {key_label !== null && (
              <>
                <bdi>{key_label}</bdi>{" "}
              </>
            )}
            (…{key_last4})
          </a>
        </>
      )}
      {isAnother && (
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

function Actor({ record: { actor, action } }: { record: AuditRecord }): VNode {
  if (actor !== null) return <bdi>{actor}</bdi>;
  const isStranger = action === "member.sign_in_failed";
  return <>{isStranger ? "Somebody" : "An administrator, on the command line,"}</>;
}

export interface AuditListing {
  readonly records: readonly AuditRecord[];
  /** Paths; null where there is nothing there. */
  readonly newer: string | null;
  readonly older: string | null;
}

export function AuditPage({
  visit,
  records,
  newer,
  older,
}: AuditListing & { visit: MemberVisit }): VNode {
  return (
    <Layout title="Audit" member={visit.member} csrfToken={visit.csrfToken} place="/audit">
      <p>Who did what to your desk, its keys and its members, newest first.</p>
      {records.length === 0 ? (
        <p class="empty">There is nothing here.</p>
      ) : (
        <AuditTable records={records} now={visit.now} />
      )}
      {(newer !== null || older !== null) && (
        <nav class="actions" aria-label="Pages of the audit">
          {newer !== null && (
            <a class="button quiet" href={newer} rel="prev">
              Newer
            </a>
          )}
          {older !== null && (
            <a class="button quiet" href={older} rel="next">
              Older
            </a>
          )}
        </nav>
      )}
    </Layout>
  );
}

function AuditTable({ records, now }: { records: readonly AuditRecord[]; now: number }): VNode {
  return (
    <div class="scroll">
      <table>
        <caption class="unseen">Audit</caption>
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">What</th>
            <th scope="col">From</th>
          </tr>
        </thead>
        <tbody>
          {records.map((record) => (
            <tr>
              <td data-label="When">
                <Past at={record.at} now={now} />
              </td>
              <td data-label="What">
                <AuditPhrase record={record} />
              </td>
              <td data-label="From">{record.client ?? "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
