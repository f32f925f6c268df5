/** Where notices go, the queue of those that are not delivered yet, and which troubles last. */
import type { DeskRef } from "../desk/desk.ts";
import type { SilenceRule } from "../desk/silence.ts";
import type {
  DeliveryRecord,
  DestinationKind,
  Notice,
  NoticeKind,
  NoticePlace,
} from "../notice/notice.ts";
import type { Author } from "./author.ts";
import type { Awaitable } from "./awaitable.ts";
import type { OfDesk } from "./registry.ts";

export type Notices = Places & Deliveries & Troubles & Watching;

/** Errors are `UserError`s; every change is in the audit. */
export interface Places {
  /** Of a desk, or of the operator (null), the oldest first. */
  listPlaces(of: DeskRef | null): Awaitable<NoticePlace[]>;
  /** Returns null for an unknown id, a removed place, and another desk's. */
  findPlace(id: string, of?: OfDesk): Awaitable<NoticePlace | null>;
  /** Refused if the desk has `PLACES_MAX`. A member may name only addresses of the desk's members for e-mail. */
  addPlace(place: NewPlace, by: Author): Awaitable<NoticePlace>;
  /** Forgets its secrets, and what waits for it. Throws `NotFoundError` as {@link findPlace} returns null. */
  removePlace(id: string, of: OfDesk, by: Author): Awaitable<NoticePlace>;
}

export interface NewPlace {
  /** Null: the operator's. */
  readonly desk: DeskRef | null;
  readonly destination: DestinationKind;
  readonly shown: string;
  /** URL, token and secret, encrypted; null for an e-mail address. */
  readonly sealed: Uint8Array | null;
  readonly kinds: readonly NoticeKind[] | null;
}

/** A place as its sender needs it. */
export interface SealedPlace extends NoticePlace {
  readonly deskId: number | null;
  readonly sealed: Uint8Array | null;
}

export interface Deliveries {
  /** All places that are in use: those of archived desks are not. */
  sealedPlaces(): Awaitable<SealedPlace[]>;
  /**
   * Queues it for each place of its desk, or of the operator, that wants it. A place that got
   * `NOTICES_PER_HOUR_MAX` in the last hour gets none, but the count with its next one. Returns how many wait.
   */
  enqueue(notice: Notice): Awaitable<number>;
  /** Queues a test for one place, which is not tried again. Returns the delivery's id. */
  enqueueTest(placeId: string, notice: Omit<Notice, "kind">): Awaitable<string>;
  /** Of each place, the oldest one whose time has come. */
  due(limit: number): Awaitable<DueDelivery[]>;
  /** Records an attempt. `retryAt`: null if it was the last one. */
  settle(id: string, outcome: Outcome): Awaitable<void>;
  /** Of a place, the newest first. */
  lastDeliveries(placeId: string, limit: number): Awaitable<DeliveryRecord[]>;
  findDelivery(id: string): Awaitable<DeliveryRecord | null>;
  /** Removes those that ended before this time, and all but the latest of each place. */
  forgetDeliveries(before: number): Awaitable<void>;
}

export interface DueDelivery {
  readonly id: string;
  readonly placeId: string;
  readonly createdAt: number;
  readonly attempts: number;
  readonly isTest: boolean;
  readonly notice: QueuedNotice;
}

/** A notice, and how many the place did not get before it. */
export type QueuedNotice = Omit<Notice, "kind"> & {
  readonly kind: NoticeKind | "test";
  readonly suppressed: number;
};

export type Outcome =
  | { readonly state: "delivered" | "failed"; readonly answer: string }
  | { readonly state: "waiting"; readonly answer: string; readonly retryAt: number };

/** A trouble that began and has not ended, or what was told last of something that is only told now and then. */
export interface Trouble {
  readonly kind: NoticeKind;
  readonly deskId: number | null;
  readonly subject: string;
  /** Epoch milliseconds. */
  readonly beganAt: number;
  /** When people were told last: at its beginning, or by a reminder. Epoch milliseconds. */
  readonly toldAt: number;
  /** What happened since, for kinds that count. */
  readonly count: number;
}

export interface Troubles {
  listTroubles(): Awaitable<Trouble[]>;
  /** Adds it, or replaces the one with the same kind, desk and subject. */
  saveTrouble(trouble: Trouble): Awaitable<void>;
  endTrouble(trouble: Pick<Trouble, "kind" | "deskId" | "subject">): Awaitable<void>;
}

/** A desk that has a place for notices and is not archived. */
export interface WatchedDesk {
  readonly id: number;
  readonly name: string;
  readonly differing_duplicates: number;
  readonly silence: SilenceRule;
}

export interface Watched {
  /** Whether the operator has a place. */
  readonly hasOperator: boolean;
  readonly desks: readonly WatchedDesk[];
}

/** What is looked at every few seconds, for all desks at once. */
export interface Watching {
  watched(): Awaitable<Watched>;
  /** When the newest signal of each desk was stored, epoch milliseconds. Leaves out those that have none. */
  newestSignals(deskIds: readonly number[]): Awaitable<{ deskId: number; at: number }[]>;
}

/** Of a desk, and of the operator. */
export const PLACES_MAX = 10;
/** To one place. */
export const NOTICES_PER_HOUR_MAX = 20;
