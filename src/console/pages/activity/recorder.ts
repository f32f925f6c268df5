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
  type Refused,
  type RejectReason,
  REJECT_REASONS_PER_KEY_KEPT,
  type RequestObserver,
  REQUESTS_PER_REASON_KEPT,
  startOfBucket,
  textOfReason,
} from "../../../domain/activity/activity.ts";
import {
  DIFFERING_PER_SIGNAL_KEPT,
  type DifferingValues,
  REJECTED_KEPT,
  type RejectedBody,
  SENT_BYTES_MAX,
} from "../../../domain/activity/sent.ts";
import type { AppError } from "../../../domain/errors.ts";
import { CLIENT_SIGNAL_ID_CHARACTERS_MAX, type Signal } from "../../../domain/signal/signal.ts";
import type { Appended, Identity } from "../../../domain/storage/append.ts";
import { Latest } from "./latest.ts";
import { messageOf, reasonOf } from "./reject-reason.ts";

/** Minutes of keys and repeated signals, of each so many per batch, for all desks; the rest is not recorded. */
export const GROUPS_MAX = 10_000;
/** Reasons per batch, for all desks: each is several rows. */
export const REASONS_MAX = 1_000;
/** Bodies per batch, and values of duplicates that differ, for all desks: 4 MB of each. */
export const SENT_MAX = 2_000;

const BATCH_EVERY_MS = 1_000;

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };
type LatestRequest = KeyRejects["latest"][number];
type Group = Mutable<Omit<KeyRejects, "latest">> & { readonly latest: LatestRequest[] };
type Minute = Mutable<Omit<KeyMinute, "rejects">> & { readonly rejects: Map<string, Group> };

export class ActivityRecorder implements RequestObserver {
  #minutes = new Map<string, Minute>();
  #reasons = 0;
  #repeats = new Map<string, Mutable<ActivityBatch["repeats"][number]>>();
  readonly #bodies = new Latest<number, RejectedBody>(REJECTED_KEPT, SENT_MAX);
  readonly #values = new Latest<string, DifferingValues>(DIFFERING_PER_SIGNAL_KEPT, SENT_MAX);
  #send: ((batch: ActivityBatch) => void) | null = null;
  #timer: Timer | undefined;
  #isUnderWay = false;

  accepted(owner: Identity, acceptance: Acceptance): void {
    const { receivedAt: at, appended } = acceptance;
    const minute = this.#minute(owner, at);
    if (minute !== null) minute[appended.deduped ? "duplicate" : "stored"] += 1;
    if (!appended.deduped) return;
    this.#repeat(owner, at, appended);
    if (appended.differs.length > 0) this.#keepValues(owner, acceptance, appended);
  }

  /** Skips requests without a known key: they concern no desk. */
  rejected(
    owner: Identity | null,
    at: number,
    requestId: string,
    error: AppError | null,
    { body }: Pick<Refused, "body">,
  ): void {
    const minute = owner === null ? null : this.#minute(owner, at);
    if (minute === null) return;
    minute.rejected += 1;
    if (error?.seenCode === "unauthorized") minute.unauthorized += 1;
    const reason = reasonOf(error);
    // Nothing is wrong with what got 5xx, and an outage would displace what is at fault.
    if (body !== null && reason.status < 500) {
      const answer = { ...reason, message: messageOf(error) };
      const id = error?.detail.clientSignalId ?? null;
      this.#bodies.add(minute.deskId, () => ({
        deskId: minute.deskId,
        keyId: minute.keyId,
        requestId,
        at,
        answer,
        clientSignalId: id && copyOf(id, CLIENT_SIGNAL_ID_CHARACTERS_MAX),
        // A copy: the whole body may be 32 times as long.
        start: new Uint8Array(body.subarray(0, SENT_BYTES_MAX)),
        bytes: body.length,
      }));
    }
    const group = this.#group(minute, reason);
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
    this.#send({ minutes, repeats, bodies: this.#bodies.take(), values: this.#values.take() });
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

  #keepValues(
    { deskId, keyId }: Identity,
    { requestId, receivedAt: at, signal }: Acceptance,
    { id: signalId, differs }: Appended & { deduped: true },
  ): void {
    this.#values.add(signalId, () => {
      const values = Object.fromEntries(differs.map((name) => [name, valueOf(signal, name)]));
      return { deskId, keyId, requestId, at, signalId, values };
    });
  }

  #dropLeastRecent(rejects: Map<string, Group>): void {
    const [first] = rejects.keys();
    if (first !== undefined && rejects.delete(first)) this.#reasons -= 1;
  }

  /** Null if the batch has enough reasons. */
  #group({ rejects }: Minute, reason: RejectReason): Group | null {
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

/** One unit more than is kept tells that it is cut. */
function valueOf(signal: Signal, name: keyof Signal): string | number | null {
  const value = signal[name];
  return typeof value === "string" ? copyOf(value, SENT_BYTES_MAX + 1) : value;
}

/** Its start, which would otherwise keep the whole text in memory. */
function copyOf(text: string, unitsMax: number): string {
  return Buffer.from(text.slice(0, unitsMax)).toString();
}
