/** The words of the pages of activity. */
import type { ActivityWidth } from "../../../domain/activity/activity.ts";
import { meantField } from "../../../domain/error-body.ts";
import { REQUIRED_FIELD, type SeenCode, UNKNOWN_FIELD } from "../../../domain/errors.ts";

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
export type Kind = (typeof kinds)[number]["kind"];

/** What happened, and what the bot should do. */
export const errors: Readonly<Record<SeenCode, { name: string; remedy: string }>> = {
  bad_request: {
    name: "The body is not a valid JSON object",
    remedy: "Correct the body. Sent again unchanged, it is rejected again.",
  },
  unauthorized: {
    name: "The key is revoked or expired",
    remedy: "Give the bot a key that works.",
  },
  foreign_network: {
    name: "The key was used from outside its networks",
    remedy:
      "If this was your bot, create a key with its network. If not, somebody has the key: create another one, and revoke this one.",
  },
  validation_failed: {
    name: "Some fields are invalid",
    remedy: "Correct the fields, then send it again.",
  },
  internal_error: {
    name: "The server failed",
    remedy: "Send the same body again, with backoff.",
  },
  https_required: {
    name: "Sent without HTTPS",
    remedy: "Use the https address, and rotate the key: it was sent in the clear.",
  },
  not_found: { name: "Wrong path", remedy: "Correct the path: signals go to POST /v1/signals." },
  method_not_allowed: { name: "Wrong method", remedy: "Send signals with POST." },
  payload_too_large: {
    name: "The body is too large",
    remedy: "Send at most 64 KiB, with shorter metadata for example.",
  },
  unsupported_media_type: {
    name: "Wrong content type",
    remedy: "Send application/json in UTF-8, without compression.",
  },
  rate_limited: {
    name: "Sent faster than the rate limit",
    remedy: "Wait the seconds that Retry-After says, then send it again.",
  },
  unavailable: {
    name: "The signal could not be stored at that moment",
    remedy: "Send it again with the same client_signal_id: the outcome is unknown.",
  },
  damaged_signal: {
    name: "The signal that it repeats is damaged on the server's disk",
    remedy: "Tell your administrator, who can restore a backup.",
  },
};

/** Limits per row, which keep the page small. */
export const FIELDS_SHOWN = 3;
export const FIELD_CHARACTERS_MAX = 42;
export const LABEL_CHARACTERS_MAX = 30;

/** Continues a sentence that begins with the field's name. */
export function describeField(name: string, reason: string): string {
  if (reason === REQUIRED_FIELD) return "is required";
  if (reason !== UNKNOWN_FIELD) return reason;
  const meant = meantField(name);
  return meant === null ? "is an unknown field" : `is an unknown field (did you mean ${meant}?)`;
}
