/** What requests sent that stored nothing: rejected ones, and duplicates that differ from their signal. */
import type { FieldReasons, SeenCode } from "../errors.ts";
import { CLIENT_SIGNAL_ID_CHARACTERS_MAX as ID_MAX, type Signal } from "../signal/signal.ts";
import { withoutSecrets } from "./secrets.ts";

/** Invalid fields kept per rejected request. */
export const REJECT_FIELDS_MAX = 10;
/** Rejected requests of a desk whose content is kept, the latest ones; the others are only counted. */
export const REJECTED_KEPT = 200;
/** Duplicates that differ, per signal, the latest ones. */
export const DIFFERING_PER_SIGNAL_KEPT = 20;
/** The same per desk: each may have kilobytes of metadata. */
export const DIFFERING_SENT_KEPT = 2_000;
/** Of a body, from its start; and of metadata that differs. */
export const SENT_BYTES_MAX = 2_048;

/** The values of the fields in which a duplicate differs. */
export type SentValues = { readonly [Field in keyof Signal]?: Signal[Field] };

/** What a rejected request was told. */
export interface RejectAnswer {
  readonly status: number;
  readonly error: SeenCode;
  /** As in the answer, up to {@link REJECT_FIELDS_MAX}; null if it had none. */
  readonly fields: FieldReasons | null;
  /** How many more invalid fields the request had. */
  readonly moreFields: number;
  /** Null if the answer had none. */
  readonly message: string | null;
}

interface FromClient {
  readonly deskId: number;
  readonly keyId: string;
  /** A UUIDv7: rises with time. */
  readonly requestId: string;
  readonly at: number;
}

/** As it arrived, on its way to {@link keptBody}. */
export interface RejectedBody extends FromClient {
  readonly answer: RejectAnswer;
  /** Null if it is not known yet. */
  readonly clientSignalId: string | null;
  /** Up to {@link SENT_BYTES_MAX}. */
  readonly start: Uint8Array;
  /** The length of the whole body. */
  readonly bytes: number;
}

/** As it arrived, on its way to {@link keptValues}. */
export interface DifferingValues extends FromClient {
  readonly signalId: string;
  readonly values: SentValues;
}

/** A rejected request as it is kept. */
export interface SentReject {
  readonly request_id: string;
  readonly desk_id: number;
  readonly key_id: string;
  readonly at: number;
  readonly status: number;
  readonly error: SeenCode;
  readonly fields: FieldReasons | null;
  readonly more_fields: number;
  readonly message: string | null;
  /** Null if it cannot be read. */
  readonly client_signal_id: string | null;
  /** The start of the body, without what looks like a key. */
  readonly body: string;
  /** The length of the whole body as it was sent. */
  readonly body_bytes: number;
}

/** A duplicate that differs, as it is kept. */
export interface SentDuplicate {
  readonly request_id: string;
  readonly key_id: string;
  readonly at: number;
  readonly values: SentValues;
}

const CLIENT_SIGNAL_ID = /"client_signal_id"\s*:\s*("(?:[^"\\]|\\.){1,255}")/;

/** Returns what is kept of a body: text without what looks like a key. */
export function keptBody({ start, bytes, clientSignalId }: RejectedBody): {
  readonly body: string;
  readonly client_signal_id: string | null;
} {
  const isCut = bytes > start.length;
  // The rest of a character that was cut is left out. U+0000: UTF-16, and no database keeps it in a text.
  const text = new TextDecoder().decode(start, { stream: isCut }).replaceAll("\0", "");
  const body = withoutSecrets(text, { isCut });
  const id = clientSignalId ?? idIn(body);
  return { body, client_signal_id: id === null ? null : withoutSecrets(id.slice(0, ID_MAX)) };
}

function idIn(body: string): string | null {
  try {
    return JSON.parse(CLIENT_SIGNAL_ID.exec(body)?.[1] ?? "null") as string | null;
  } catch {
    return null;
  }
}

/** Returns the values without what looks like a key. Metadata that is cut ends with an ellipsis. */
export function keptValues(values: SentValues): SentValues {
  const kept = Object.entries(values).map(([name, value]) => [name, keptValue(name, value)]);
  return Object.fromEntries(kept) as SentValues;
}

/** Of a stored signal, too, beside which they are shown. */
export function keptValue(name: string, value: string | number | null): string | number | null {
  if (typeof value !== "string") return value;
  const isCut = name === "metadata" && value.length > SENT_BYTES_MAX;
  return isCut
    ? `${withoutSecrets(value.slice(0, SENT_BYTES_MAX), { isCut })}…`
    : withoutSecrets(value);
}
