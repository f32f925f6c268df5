/**
 * Counts the outcomes of requests on the thread that answers them; the console's thread writes them down.
 *
 * A request costs a look-up and an addition. The counts are bounded, and are sent at most once per second,
 * after the previous batch was written: no signal waits for a slow disk or console.
 */
import {
  type ActivityBatch,
  type ActivityObserver,
  activityWidths,
  type KeyMinute,
  REJECT_FIELDS_MAX,
  REJECTS_KEPT,
  startOfBucket,
} from "../../domain/activity.ts";
import {
  type AppError,
  errorCatalogue,
  type FieldReasons,
  UNKNOWN_FIELD,
} from "../../domain/errors.ts";
import { redactKeys } from "../../domain/key.ts";
import type { Appended, Identity } from "../../domain/storage.ts";

/** Per batch; the rest is not recorded. */
export const KEY_MINUTES_MAX = 10_000;
const REPEATED_SIGNALS_MAX = 2_000;
/** For all desks; further ones are only counted. */
export const REJECTS_MAX = 5_000;

/** Characters of a field's name that a client made up. */
const FIELD_NAME_MAX = 100;

const BATCH_EVERY_MS = 1_000;

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };
type Reject = ActivityBatch["rejects"][number];
type Repeats = Mutable<Omit<ActivityBatch["repeats"][number], "differs">> & {
  readonly differs: Set<string>;
};

export class ActivityRecorder implements ActivityObserver {
  #minutes: Mutable<KeyMinute>[] = [];
  /** The newest minute of each key, from the list above. */
  #minuteOfKey = new Map<string, Mutable<KeyMinute>>();
  #rejects = new Map<number, Ring<Reject>>();
  #rejectsHeld = 0;
  #repeats = new Map<string, Repeats>();
  #send: ((batch: ActivityBatch) => void) | null = null;
  #timer: Timer | undefined;
  #isUnderWay = false;

  accepted(owner: Identity, at: number, appended: Appended): void {
    const minute = this.#minute(owner, at);
    if (!appended.deduped) {
      if (minute !== null) minute.stored += 1;
      return;
    }
    if (minute !== null) minute.duplicate += 1;
    this.#repeat(owner.deskId, at, appended.id, appended.differs);
  }

  rejected(owner: Identity, at: number, requestId: string, error: AppError | null): void {
    const minute = this.#minute(owner, at);
    if (minute !== null) {
      minute.rejected += 1;
      if (error?.code === "unauthorized") minute.unauthorized += 1;
    }
    const { deskId, keyId } = owner;
    let rejects = this.#rejects.get(deskId);
    if (rejects === undefined) this.#rejects.set(deskId, (rejects = new Ring(REJECTS_KEPT)));
    if (!rejects.isFull) {
      if (this.#rejectsHeld === REJECTS_MAX) return;
      this.#rejectsHeld += 1;
    }
    rejects.push({ deskId, key_id: keyId, at, request_id: requestId, ...describe(error) });
  }

  /** Starts to send batches. Each but the first waits for {@link written}. */
  start(send: (batch: ActivityBatch) => void): void {
    this.#send = send;
    this.#timer = setInterval(() => {
      if (!this.#isUnderWay) this.#flush();
    }, BATCH_EVERY_MS).unref();
  }

  /** The last batch was written, or lost: the next one may be sent. */
  written(): void {
    this.#isUnderWay = false;
  }

  /** Sends what is left. */
  stop(): void {
    clearInterval(this.#timer);
    this.#flush();
  }

  #flush(): void {
    if (this.#send === null || this.#minutes.length === 0) return;
    const batch: ActivityBatch = {
      minutes: this.#minutes,
      rejects: [...this.#rejects.values()].flatMap((rejects) => rejects.items()),
      repeats: [...this.#repeats.values()].map((repeats) => ({
        ...repeats,
        differs: [...repeats.differs],
      })),
    };
    this.#minutes = [];
    this.#minuteOfKey = new Map();
    this.#rejects = new Map();
    this.#rejectsHeld = 0;
    this.#repeats = new Map();
    this.#isUnderWay = true;
    this.#send(batch);
  }

  /** Null if the batch is full. */
  #minute({ deskId, keyId }: Identity, at: number): Mutable<KeyMinute> | null {
    const start = startOfBucket(at, activityWidths.minute.ms);
    let minute = this.#minuteOfKey.get(keyId);
    if (minute?.start !== start) {
      if (this.#minutes.length === KEY_MINUTES_MAX) return null;
      const none = { stored: 0, duplicate: 0, rejected: 0, unauthorized: 0 };
      minute = { deskId, keyId, start, ...none, lastAt: at };
      this.#minutes.push(minute);
      this.#minuteOfKey.set(keyId, minute);
    }
    minute.lastAt = Math.max(minute.lastAt, at);
    return minute;
  }

  #repeat(deskId: number, at: number, signalId: string, differs: readonly string[]): void {
    let repeats = this.#repeats.get(signalId);
    if (repeats === undefined) {
      if (this.#repeats.size === REPEATED_SIGNALS_MAX) return;
      const none = { duplicates: 0, differing: 0, differs: new Set<string>() };
      repeats = { deskId, signalId, ...none, lastAt: at };
      this.#repeats.set(signalId, repeats);
    }
    repeats.duplicates += 1;
    repeats.lastAt = Math.max(repeats.lastAt, at);
    if (differs.length === 0) return;
    repeats.differing += 1;
    for (const field of differs) repeats.differs.add(field);
  }
}

/** Keeps the newest items. */
class Ring<T> {
  readonly #size: number;
  readonly #items: T[] = [];
  #next = 0;

  constructor(size: number) {
    this.#size = size;
  }

  get isFull(): boolean {
    return this.#items.length === this.#size;
  }

  push(item: T): void {
    this.#items[this.#next] = item;
    this.#next = (this.#next + 1) % this.#size;
  }

  items(): readonly T[] {
    return this.#items;
  }
}

/** Returns the answer that the client got. */
function describe(
  error: AppError | null,
): Pick<Reject, "status" | "error" | "message" | "fields" | "moreFields"> {
  const code = error?.code ?? "internal_error";
  const { status, message } = errorCatalogue[code];
  const reasons = error?.detail.fields ?? null;
  return {
    status,
    error: code,
    message: message === null ? null : (error?.detail.message ?? message),
    ...(reasons === null ? { fields: null, moreFields: 0 } : firstOf(reasons)),
  };
}

/** Keeps all known fields and a few unknown ones: a client may send thousands, or a key as a name. */
function firstOf(reasons: FieldReasons): Pick<Reject, "fields" | "moreFields"> {
  const all = Object.entries(reasons);
  const known = all.filter(([, reason]) => reason !== UNKNOWN_FIELD);
  const unknown = all.filter(([, reason]) => reason === UNKNOWN_FIELD);
  const shown = [
    ...known,
    ...unknown
      .slice(0, Math.max(0, REJECT_FIELDS_MAX - known.length))
      .map(([name, reason]) => [shorten(redactKeys(name)), reason] as const),
  ];
  return { fields: Object.fromEntries(shown), moreFields: all.length - shown.length };
}

/** Replaces half a pair of surrogates, which no database keeps, by U+FFFD. */
function shorten(name: string): string {
  if (name.length <= FIELD_NAME_MAX) return name;
  return `${name.slice(0, FIELD_NAME_MAX).toWellFormed()}…`;
}
