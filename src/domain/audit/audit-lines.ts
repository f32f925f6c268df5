/** The audit as lines for people: equal failures in a row are one line. */
import type { AuditAction, AuditRecord } from "./audit.ts";

export interface AuditLine {
  /** The newest. */
  readonly record: AuditRecord;
  readonly count: number;
  readonly oldestId: number;
}

const failures: ReadonlySet<AuditAction> = new Set<AuditAction>([
  "member.sign_in_failed",
  "member.confirmation_failed",
]);

/** `records`: newest first. */
export function auditLines(records: readonly AuditRecord[]): AuditLine[] {
  const lines: AuditLine[] = [];
  for (const record of records) {
    const line = lines.at(-1);
    if (line !== undefined && isRepeated(line.record, record)) {
      lines[lines.length - 1] = { ...line, count: line.count + 1, oldestId: record.id };
    } else {
      lines.push({ record, count: 1, oldestId: record.id });
    }
  }
  return lines;
}

function isRepeated(one: AuditRecord, other: AuditRecord): boolean {
  const same = ["action", "desk", "actor", "subject", "detail", "client", "os_user"] as const;
  return failures.has(one.action) && same.every((name) => one[name] === other[name]);
}
