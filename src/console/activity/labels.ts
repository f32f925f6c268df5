/** The words of the page of activity. */
import type { ActivityWidth } from "../../domain/activity.ts";
import { type ErrorCode, REQUIRED_FIELD, UNKNOWN_FIELD } from "../../domain/errors.ts";

/** What the chart shows, by the width of its bars, and how often a script asks for it. */
export const spans: Record<ActivityWidth, { name: string; refreshMs: number }> = {
  minute: { name: "3 hours", refreshMs: 5_000 },
  hour: { name: "7 days", refreshMs: 30_000 },
  day: { name: "90 days", refreshMs: 30_000 },
};
export const widths = Object.keys(spans) as ActivityWidth[];

export const kinds = [
  { kind: "stored", name: "Stored", what: "new signals" },
  { kind: "duplicate", name: "Duplicate", what: "stored before" },
  { kind: "rejected", name: "Rejected", what: "nothing stored" },
] as const;

/** What a bot should do after an error, by its code. */
export const remedies: Readonly<Record<ErrorCode, string>> = {
  bad_request: "Not JSON: do not send it again unchanged.",
  unauthorized: "Give the bot a key that works.",
  validation_failed: "Correct the fields, then send it again.",
  internal_error: "Send the same body again, with backoff.",
  https_required: "Use the https address, and rotate the key: it was sent in the clear.",
  not_found: "Wrong path: fix the bot.",
  method_not_allowed: "Wrong method: fix the bot.",
  payload_too_large: "Over 64 KiB: do not send it again unchanged.",
  unsupported_media_type: "Not application/json in UTF-8, or compressed: fix the bot.",
  rate_limited: "Wait the seconds that Retry-After says, then send it again.",
  unavailable: "Outcome unknown: send it again with the same client_signal_id.",
};

/** Continues a sentence that begins with the field's name. */
export function describeField(reason: string): string {
  if (reason === REQUIRED_FIELD) return "is required";
  return reason === UNKNOWN_FIELD ? "is an unknown field" : reason;
}
