/** Who changed keys and members, or signed in from a browser not seen before: as the audit says, at once. */
import {
  type AuditAction,
  auditActor,
  type AuditRecord,
  describeAudit,
  isFromNewBrowser,
  isSuccessor,
} from "../../domain/audit/audit.ts";
import { formatTime, plural } from "../../lib/text/words.ts";
import type { Words } from "./book.ts";
import type { RowMaker } from "./row.ts";

const actions: readonly AuditAction[] = [
  "key.created",
  "key.rotated",
  "key.revoked",
  "member.joined",
  "member.removed",
  "member.signed_in",
];
/** Entries per look, of all desks. */
const READ_MAX = 500;
/** Entries per notice. */
const TOLD_MAX = 10;

/** Up to which entry people were told. */
const place = { kind: "changes", deskId: null, subject: "" } as const;

export const changes: RowMaker = ({ audit }, book) => ({
  everyMs: 0,
  look: async ({ now, watched, isWatched }) => {
    const told = book.find(place.kind, place.deskId, place.subject);
    const put = (id: number): void => book.put({ ...place, beganAt: now, toldAt: now, count: id });
    const newest = await audit.newestId();
    // What happened before the first look is no news.
    if (told === null) return put(newest);
    if (newest <= told.count) return;
    const records = await audit.listSince({ after: told.count, actions, limit: READ_MAX });
    const deskIds = new Map(watched.desks.map(({ id, name }) => [name, id]));
    const idOf = ({ desk }: AuditRecord) => (desk === null ? null : deskIds.get(desk));
    for (const [deskId, ofDesk] of Map.groupBy(newsIn(records), idOf)) {
      if (deskId === undefined || !isWatched(deskId)) continue;
      await book.tell({ ...place, deskId }, "once", wordsOf(ofDesk));
    }
    const last = records.at(-1)?.id ?? 0;
    put(records.length < READ_MAX ? Math.max(newest, last) : last);
  },
});

/** Without what another entry says as well. */
function newsIn(records: readonly AuditRecord[]): AuditRecord[] {
  const joined = records.filter(({ action }) => action === "member.joined");
  return records.filter((record) => {
    if (record.action === "key.created") return !isSuccessor(record);
    if (record.action !== "member.signed_in") return true;
    return isFromNewBrowser(record) && !joined.some(({ actor }) => actor === record.actor);
  });
}

function wordsOf(records: readonly AuditRecord[]): Words {
  const sentences = records.map((record) => `${auditActor(record)} ${describeAudit(record)}`);
  const [first = "", ...others] = sentences;
  const lines = records
    .slice(0, TOLD_MAX)
    .map(
      (record, index) =>
        `${formatTime(record.at)} ${sentences[index]}${record.client === null ? "" : `, from ${record.client}`}`,
    );
  const more = records.length - lines.length;
  if (more > 0) lines.push(`and ${plural(more, "more change")}: see the audit`);
  return {
    title: others.length === 0 ? first : `${plural(records.length, "change")} to keys and members`,
    text: lines.join("\n"),
    path: "/audit",
  };
}
