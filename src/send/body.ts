/** Bodies as they are sent: validated by the server's own rules, and with an id. */
import { errorBody } from "../domain/error-body.ts";
import { AppError, errorCatalogue } from "../domain/errors.ts";
import { BODY_BYTES_MAX, parseSignal } from "../domain/signal/signal.ts";
import type { Bytes, Line } from "./input.ts";
import { parseObject } from "./sender.ts";

/** Why a signal is not stored: the status and the body of the answer, which we foresee or have got. */
export interface Refusal {
  readonly line: number;
  readonly status: number;
  readonly [member: string]: unknown;
}

const OPEN_BRACE = 0x7b;
const encoder = new TextEncoder();
const ID_BYTES = withId(encoder.encode("{"), crypto.randomUUID()).length - 1;

/** Returns the refusal that the server would answer with, or whether the signal has an id. */
export function checkLine({ number, bytes }: Line): Refusal | { readonly hasId: boolean } {
  try {
    if (bytes === null) throw new AppError("payload_too_large");
    const hasId = parseSignal(bytes).client_signal_id !== null;
    if (!hasId && bytes.length + ID_BYTES > BODY_BYTES_MAX) {
      throw new AppError("payload_too_large");
    }
    return { hasId };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { status } = errorCatalogue[error.code];
    return { line: number, status, ...errorBody(error) };
  }
}

/** Adds an id as the first member; every other byte stays as it is. */
export function withId(object: Bytes, id: string): Bytes {
  const start = object.indexOf(OPEN_BRACE) + 1;
  const member = encoder.encode(`"client_signal_id":"${id}",`);
  return Buffer.concat([object.subarray(0, start), member, object.subarray(start)]);
}

/** Reads an answer that refuses a signal. */
export function refusalOf(line: number, status: number, answer: string): Refusal {
  const { error, message, fields } = parseObject(answer);
  // JSON leaves out what is undefined.
  return { line, status, error, message, fields };
}

/** `side: required; price: must be a number`, or the message. `flag` names a field. */
export function describeRefusal(
  { status, error, message, fields }: Omit<Refusal, "line">,
  flag: (field: string) => string = (field) => field,
): string {
  if (typeof fields === "object" && fields !== null) {
    const reasons = Object.entries(fields).map(([field, reason]) => `${flag(field)}: ${reason}`);
    return reasons.join("; ");
  }
  return String(message ?? error ?? status);
}
