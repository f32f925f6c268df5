/** Entries of the audit in words for people. */
import type { VNode } from "preact";
import { auditPhrases, type AuditRecord, beforeDetail } from "../../../domain/audit/audit.ts";
import { shorten } from "../../ui/words.ts";

/** A sentence without its full stop. */
export function AuditPhrase({ record }: { record: AuditRecord }): VNode {
  return (
    <>
      <Actor record={record} /> <Deed record={record} />
    </>
  );
}

export function Actor({ record: { actor, action, os_user } }: { record: AuditRecord }): VNode {
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

export function Deed({
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
