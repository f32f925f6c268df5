/** Activity as the recorder describes it. */
import {
  type ActivityBatch,
  type KeyMinute,
  type KeyRejects,
  type RejectReason,
  textOfReason,
} from "../../src/domain/activity/activity.ts";

export const sideIsRequired: RejectReason = {
  status: 422,
  error: "validation_failed",
  fields: { side: "required" },
  moreFields: 0,
};

export const rateLimited: RejectReason = {
  status: 429,
  error: "rate_limited",
  fields: null,
  moreFields: 0,
};

export function batchOf(...minutes: KeyMinute[]): ActivityBatch {
  return { minutes, repeats: [], bodies: [], values: [] };
}

export function minuteOf(at: number, minute: Partial<KeyMinute> = {}): KeyMinute {
  return {
    deskId: 1,
    keyId: "key-1",
    start: at,
    stored: 0,
    duplicate: 0,
    rejected: 0,
    unauthorized: 0,
    lastAt: at,
    rejects: new Map(),
    ...minute,
  };
}

/** One request per number; their ids and times, from `start` on, rise with it. */
export function rejectsOf(
  numbers: readonly number[],
  start: number,
  {
    reason = sideIsRequired,
    count = numbers.length,
    ...minute
  }: Partial<Pick<KeyRejects, "reason" | "count"> & KeyMinute> = {},
): KeyMinute {
  const latest = numbers.map((number) => ({
    request_id: requestIdOf(number),
    at: start + number,
    message: null,
  }));
  const rejects = new Map([[textOfReason(reason), { reason, count, latest }]]);
  return minuteOf(start + Math.max(...numbers), { rejected: count, rejects, ...minute });
}

export function requestIdOf(number: number): string {
  return `01a1ff50-0000-7000-8000-${String(number).padStart(12, "0")}`;
}

/** Two duplicates of a signal; one of them differed in these fields. */
export function repeatsOf(
  signalId: string,
  differs: string[],
  { lastAt, ...repeats }: Partial<ActivityBatch["repeats"][number]> & { lastAt: number },
): ActivityBatch["repeats"][number] {
  const differing = differs.length === 0 ? 0 : 1;
  const differedAt = differing * lastAt;
  const sent = { deskId: 1, keyId: "key-1", duplicates: 2 };
  return { ...sent, signalId, differing, differs, lastAt, differedAt, ...repeats };
}
