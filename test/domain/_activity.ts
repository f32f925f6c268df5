/** Rejected requests as the recorder describes them. */
import type { KeyRejects, RejectReason } from "../../src/domain/activity/activity.ts";

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

/** One request per number; their ids and times, from `start` on, rise with it. */
export function rejectsOf(
  numbers: readonly number[],
  start: number,
  rejects: Partial<KeyRejects> = {},
): KeyRejects {
  return {
    deskId: 1,
    keyId: "key-1",
    reason: sideIsRequired,
    count: numbers.length,
    firstAt: start + Math.min(...numbers),
    lastAt: start + Math.max(...numbers),
    latest: numbers.map((number) => ({
      request_id: requestIdOf(number),
      at: start + number,
      message: null,
    })),
    ...rejects,
  };
}

export function requestIdOf(number: number): string {
  return `01a1ff50-0000-7000-8000-${String(number).padStart(12, "0")}`;
}
