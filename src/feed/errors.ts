/** The messages of the error catalogue that speak of sending, in the words of a reader. */
import { AppError, type ErrorCode } from "../domain/errors.ts";
import { damagedSignal } from "../domain/signal/hash.ts";

export const messages: Partial<Record<ErrorCode, string>> = {
  bad_request: "The request has too many parameters, or more than one Host header.",
  not_found: "This path does not exist; signals are read with GET /feed.",
  rate_limited:
    "The key or its desk has too many requests in progress; retry after the seconds in Retry-After.",
  damaged_signal: damagedSignal("01K5QZ8F3V9X2M7T4B6N1C0D8E").message,
  unavailable: "The signals cannot be read now; retry after the seconds in Retry-After.",
};

/** Gives an error without a message of its own that of {@link messages}. */
export function forReaders(error: unknown): unknown {
  if (!(error instanceof AppError) || error.detail.message !== undefined) return error;
  const message = messages[error.code];
  return message === undefined ? error : new AppError(error.code, { ...error.detail, message });
}
