/**
 * Counts the outcomes of requests on the thread that answers them; the console's thread writes them down.
 *
 * A request costs a look-up and an addition. The counts are bounded, and are sent at most once per second,
 * after the previous batch was written: no signal waits for a slow disk or console.
 */
import {
  type Acceptance,
  type ActivityBatch,
  activityWidths,
  type KeyMinute,
  type RequestObserver,
  startOfBucket,
} from "../../../domain/activity/activity.ts";
import type { AppError } from "../../../domain/errors.ts";
import type { Identity } from "../../../domain/storage/append.ts";
import { DifferingRecorder } from "./differing-recorder.ts";
import { RejectRecorder } from "./reject-recorder.ts";

/** Per batch; the rest is not recorded. */
export const KEY_MINUTES_MAX = 10_000;
const REPEATED_SIGNALS_MAX = 2_000;

const BATCH_EVERY_MS = 1_000;

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };
type Repeats = Mutable<Omit<ActivityBatch["repeats"][number], "differs">> & {
  readonly differs: Set<string>;
};

export class ActivityRecorder implements RequestObserver {
  #minutes: Mutable<KeyMinute>[] = [];
  /** The newest minute of each key, from the list above. */
  #minuteOfKey = new Map<string, Mutable<KeyMinute>>();
  readonly #rejects = new RejectRecorder();
  readonly #differing = new DifferingRecorder();
  #repeats = new Map<string, Repeats>();
  #send: ((batch: ActivityBatch) => void) | null = null;
  #timer: Timer | undefined;
  #isUnderWay = false;

  accepted(owner: Identity, { receivedAt: at, appended }: Acceptance): void {
    const minute = this.#minute(owner, at);
    if (!appended.deduped) {
      if (minute !== null) minute.stored += 1;
      return;
    }
    if (minute !== null) minute.duplicate += 1;
    this.#repeat(owner.deskId, at, appended.id, appended.differs);
    if (appended.differs.length > 0) {
      this.#differing.add(owner, at, appended.id, appended.differs);
    }
  }

  /** Skips requests without a known key: they concern no desk. */
  rejected(owner: Identity | null, at: number, requestId: string, error: AppError | null): void {
    if (owner === null) return;
    const minute = this.#minute(owner, at);
    if (minute !== null) {
      minute.rejected += 1;
      if (error?.code === "unauthorized") minute.unauthorized += 1;
    }
    this.#rejects.add(owner, at, requestId, error);
  }

  /** Starts to send batches. Each but the first waits for {@link written}. */
  start(send: (batch: ActivityBatch) => void): void {
    this.#send = send;
    this.#timer = setInterval(() => {
      if (!this.#isUnderWay) this.#flush();
    }, BATCH_EVERY_MS).unref();
  }

  /** The last batch was written: the next one may be sent. */
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
      rejects: this.#rejects.take(),
      differing: this.#differing.take(),
      repeats: [...this.#repeats.values()].map((repeats) => ({
        ...repeats,
        differs: [...repeats.differs],
      })),
    };
    this.#minutes = [];
    this.#minuteOfKey = new Map();
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
