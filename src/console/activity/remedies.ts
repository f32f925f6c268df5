/** What a bot should do after an answer that is an error: a sentence for each code. */
import type { ErrorCode } from "../../domain/errors.ts";

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
