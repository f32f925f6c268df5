/** Groups rejected requests by desk, key and reason until they are written. */
import {
  type KeyRejects,
  REJECT_FIELDS_MAX,
  REJECT_REASONS_KEPT,
  REJECT_REASONS_PER_KEY_KEPT,
  type RejectReason,
  REQUESTS_PER_REASON_KEPT,
  textOfReason,
} from "../../../domain/activity/activity.ts";
import {
  type AppError,
  errorCatalogue,
  type FieldReasons,
  UNKNOWN_FIELD,
} from "../../../domain/errors.ts";
import { redactKeys } from "../../../domain/key/key.ts";
import type { Identity } from "../../../domain/storage/append.ts";

/** For all desks, per batch. Requests for further reasons are not described. */
export const REASONS_MAX = 1_000;

/** Characters of a field's name that a client made up. */
const FIELD_NAME_MAX = 100;

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };
type Latest = KeyRejects["latest"][number];
type Group = Mutable<Omit<KeyRejects, "latest">> & { readonly latest: Latest[] };

export class RejectRecorder {
  /** Desk → key and reason → requests; the most recent group last. */
  #desks = new Map<number, Map<string, Group>>();
  #groups = 0;

  add({ deskId, keyId }: Identity, at: number, requestId: string, error: AppError | null): void {
    const reason = reasonOf(error);
    let groups = this.#desks.get(deskId);
    if (groups === undefined) this.#desks.set(deskId, (groups = new Map<string, Group>()));
    // Most rejects of a flood have no fields, and get by without the full text.
    const text = reason.fields === null ? reason.error : textOfReason(reason);
    const name = `${keyId} ${text}`;
    let group = groups.get(name);
    if (group === undefined) {
      if (!this.#makeRoom(groups, keyId)) return;
      group = { deskId, keyId, reason, count: 0, firstAt: at, lastAt: at, latest: [] };
    } else {
      groups.delete(name);
    }
    groups.set(name, group);
    // A ring: its order does not matter.
    group.latest[group.count % REQUESTS_PER_REASON_KEPT] = {
      request_id: requestId,
      at,
      message: messageOf(error),
    };
    group.count += 1;
    group.lastAt = Math.max(group.lastAt, at);
  }

  /** Returns the groups since the last call. */
  take(): KeyRejects[] {
    const taken = [...this.#desks.values()].flatMap((groups) => [...groups.values()]);
    this.#desks = new Map();
    this.#groups = 0;
    return taken;
  }

  /**
   * Drops the least recent group of the key, or else of the desk, if it has as many as are kept. False if
   * other desks have taken all.
   */
  #makeRoom(groups: Map<string, Group>, keyId: string): boolean {
    const names = [...groups.keys()];
    const ofKey = names.filter((name) => name.startsWith(`${keyId} `));
    if (ofKey.length >= REJECT_REASONS_PER_KEY_KEPT) return groups.delete(ofKey[0] ?? "");
    if (names.length >= REJECT_REASONS_KEPT) return groups.delete(names[0] ?? "");
    if (this.#groups === REASONS_MAX) return false;
    this.#groups += 1;
    return true;
  }
}

/** Returns what the client was told; null is a defect of ours, which is not described. */
function reasonOf(error: AppError | null): RejectReason {
  const code = error?.code ?? "internal_error";
  const { status } = errorCatalogue[code];
  const { fields, unlistedFields = 0 } = error?.detail ?? {};
  const told =
    fields === undefined ? { fields: null, moreFields: 0 } : firstOf(fields, unlistedFields);
  return { status, error: code, ...told };
}

function messageOf(error: AppError | null): string | null {
  const { message } = errorCatalogue[error?.code ?? "internal_error"];
  return message === null ? null : (error?.detail.message ?? message);
}

/** Keeps all known fields and a few unknown ones: there may be thousands, or a key as a name. */
function firstOf(
  reasons: FieldReasons,
  unlisted: number,
): Pick<RejectReason, "fields" | "moreFields"> {
  const all = Object.entries(reasons);
  const known = all.filter(([, reason]) => reason !== UNKNOWN_FIELD);
  const unknown = all.filter(([, reason]) => reason === UNKNOWN_FIELD);
  const shown = [
    ...known,
    ...unknown
      .slice(0, Math.max(0, REJECT_FIELDS_MAX - known.length))
      .map(([name, reason]) => [recordedName(name), reason] as const),
  ];
  return { fields: Object.fromEntries(shown), moreFields: all.length - shown.length + unlisted };
}

/** Returns a field's name, which may be long or a key, as it is recorded. */
export function recordedName(field: string): string {
  const name = redactKeys(field);
  if (name.length <= FIELD_NAME_MAX) return name;
  // Replaces half a pair of surrogates, which no database keeps, by U+FFFD.
  return `${name.slice(0, FIELD_NAME_MAX).toWellFormed()}…`;
}
