/**
 * Counts the outcomes of requests on the thread that answers them; the console's thread writes them down.
 *
 * A request costs a look-up and an addition. The counts are bounded, and are sent at most once per second,
 * after the previous batch was written: no signal waits for a slow disk or console.
 */
import {
  type ActivityBatch,
  type Acceptance,
  activityWidths,
  type KeyMinute,
  type KeyRejects,
  REJECT_REASONS_PER_KEY_KEPT,
  type RequestObserver,
  REQUESTS_PER_REASON_KEPT,
  startOfBucket,
  textOfReason,
} from "../../../domain/activity/activity.ts";
import type { AppError } from "../../../domain/errors.ts";
import type { Appended, Identity } from "../../../domain/storage/append.ts";
import { messageOf, reasonOf } from "./reject-reason.ts";

/** Minutes of keys and repeated signals, of each so many per batch, for all desks; the rest is not recorded. */
export const GROUPS_MAX = 10_000;
/** Reasons per batch, for all desks: each is several rows. */
export const REASONS_MAX = 1_000;

const BATCH_EVERY_MS = 1_000;

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };
type Latest = KeyRejects["latest"][number];
type Group = Mutable<Omit<KeyRejects, "latest">> & { readonly latest: Latest[] };
type Minute = Mutable<Omit<KeyMinute, "rejects">> & { readonly rejects: Map<string, Group> };

export class ActivityRecorder implements RequestObserver {
  #minutes = new Map<string, Minute>();
  #reasons = 0;
  #repeats = new Map<string, Mutable<ActivityBatch["repeats"][number]>>();
  #send: ((batch: ActivityBatch) => void) | null = null;
  #timer: Timer | undefined;
  #isUnderWay = false;

  accepted(owner: Identity, { receivedAt: at, appended }: Acceptance): void {
    const minute = this.#minute(owner, at);
    if (minute !== null) minute[appended.deduped ? "duplicate" : "stored"] += 1;
    if (appended.deduped) this.#repeat(owner, at, appended);
  }

  /** Skips requests without a known key: they concern no desk. */
  rejected(owner: Identity | null, at: number, requestId: string, error: AppError | null): void {
    const minute = owner === null ? null : this.#minute(owner, at);
    if (minute === null) return;
    minute.rejected += 1;
    if (error?.code === "unauthorized") minute.unauthorized += 1;
    const group = this.#group(minute, error);
    if (group === null) return;
    // After the first one, a ring: its order does not matter.
    const place = group.count === 0 ? 0 : 1 + ((group.count - 1) % REQUESTS_PER_REASON_KEPT);
    group.latest[place] = {
      request_id: requestId,
      at,
      message: messageOf(error),
    };
    group.count += 1;
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
    if (this.#send === null || this.#minutes.size === 0) return;
    const minutes = [...this.#minutes.values()];
    const repeats = [...this.#repeats.values()];
    this.#minutes = new Map();
    this.#reasons = 0;
    this.#repeats = new Map();
    this.#isUnderWay = true;
    this.#send({ minutes, repeats });
  }

  /** Null if the batch is full. */
  #minute({ deskId, keyId }: Identity, at: number): Minute | null {
    const start = startOfBucket(at, activityWidths.minute.ms);
    const name = `${keyId} ${start}`;
    let minute = this.#minutes.get(name);
    if (minute === undefined) {
      if (this.#minutes.size === GROUPS_MAX) return null;
      const none = { stored: 0, duplicate: 0, rejected: 0, unauthorized: 0 };
      minute = { deskId, keyId, start, ...none, lastAt: at, rejects: new Map() };
      this.#minutes.set(name, minute);
    }
    minute.lastAt = Math.max(minute.lastAt, at);
    return minute;
  }

  #dropLeastRecent(rejects: Map<string, Group>): void {
    const [first] = rejects.keys();
    if (first !== undefined && rejects.delete(first)) this.#reasons -= 1;
  }

  /** Null if the batch has enough reasons. */
  #group({ rejects }: Minute, error: AppError | null): Group | null {
    const reason = reasonOf(error);
    const text = textOfReason(reason);
    let group = rejects.get(text);
    if (group === undefined) {
      if (rejects.size === REJECT_REASONS_PER_KEY_KEPT) this.#dropLeastRecent(rejects);
      if (this.#reasons === REASONS_MAX) return null;
      this.#reasons += 1;
      group = { reason, count: 0, latest: [] };
    }
    // Last, because it is the most recent.
    rejects.delete(text);
    rejects.set(text, group);
    return group;
  }

  #repeat(
    { deskId, keyId }: Identity,
    at: number,
    { id: signalId, differs }: Appended & { deduped: true },
  ): void {
    const name = `${signalId} ${keyId}`;
    let repeats = this.#repeats.get(name);
    if (repeats === undefined) {
      if (this.#repeats.size === GROUPS_MAX) return;
      const none = { duplicates: 0, differing: 0, differs: [], lastAt: 0, differedAt: 0 };
      repeats = { deskId, signalId, keyId, ...none };
      this.#repeats.set(name, repeats);
    }
    repeats.duplicates += 1;
    repeats.lastAt = Math.max(repeats.lastAt, at);
    if (differs.length === 0) return;
    repeats.differing += 1;
    repeats.differedAt = Math.max(repeats.differedAt, at);
    repeats.differs = [...new Set([...repeats.differs, ...differs])];
  }
}
