/** Delivers what is queued, and from memory what the database does not take. One server of several does it. */
import type { Logger } from "pino";
import { ulid } from "ulid";
import type { Notice, NoticePlace } from "../domain/notice/notice.ts";
import {
  type DueDelivery,
  type Notices,
  NOTICES_PER_HOUR_MAX,
  type Outcome,
  type SealedPlace,
} from "../domain/storage/notices.ts";
import type { Notes } from "../domain/storage/shared/notes.ts";
import { messageOf } from "../lib/errors.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/text/time.ts";
import { outcomeOf, send, type SendContext } from "./send/send.ts";

const LOOK_EVERY_MS = SECOND_MS;
/** Places that are sent to at once. */
const PLACES_AT_ONCE_MAX = 20;
const TURN = "notices turn";
/** A server that dies keeps the others waiting for so long. */
const TURN_MS = 30 * SECOND_MS;
/** Nobody waits for the outcome of an older test. */
const TEST_MS_MAX = MINUTE_MS;
const KEPT_MS = 7 * DAY_MS;

interface SenderOptions {
  readonly notices: Notices;
  readonly notes: Notes;
  readonly context: SendContext;
  /** The console's public URL. */
  readonly ownUrl: () => string;
  readonly now: () => number;
  readonly log: Logger;
}

/** A delivery that is only in memory; for an hour after its end, for the limit. */
interface Unwritten extends DueDelivery {
  /** Infinite after its end. */
  readonly dueAt: number;
}

export class Sender {
  readonly #options: SenderOptions;
  readonly #me = ulid();
  readonly #stopping = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  /** As they were when they could be read last. */
  #places: readonly SealedPlace[] = [];
  /** Of places that are sent to now. */
  readonly #busy = new Map<string, Promise<void>>();
  /** Outcomes that could not be written down: what has arrived is not sent again. */
  readonly #unsettled = new Map<string, Outcome>();
  #unwritten: Unwritten[] = [];
  /** Of the notices in memory: how many a place did not get, by its id. */
  readonly #suppressed = new Map<string, number>();
  #wake: () => void = () => {};
  #hasTurn = false;
  #turnUntil = 0;
  #forgetAt = 0;
  #problem: string | null = null;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Whether this server is the one that sends. */
  get hasTurn(): boolean {
    return this.#hasTurn;
  }

  start(): void {
    this.#ended = this.#run();
  }

  /** Aborts what is being sent, which another server or the next start sends again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    await this.#ended;
    await Promise.all(this.#busy.values());
    await this.#settleAll();
    if (this.#hasTurn) await this.#attempt(async () => this.#options.notes.delete(TURN));
  }

  /** See `Notify`. */
  async notify(notice: Notice): Promise<void> {
    const { notices, log } = this.#options;
    try {
      await notices.enqueue(notice);
    } catch (error) {
      log.warn({ reason: messageOf(error) }, "a notice cannot be queued: it is sent from memory");
      await this.#attempt(async () => this.#readPlaces());
      this.#enqueueInMemory(notice);
    }
    this.#wake();
  }

  /** Only on the server that sends: the others have the same notice. */
  #enqueueInMemory(notice: Notice): void {
    if (!this.#hasTurn) return;
    const now = this.#options.now();
    const isRecent = ({ createdAt }: Unwritten): boolean => createdAt > now - HOUR_MS;
    this.#unwritten = this.#unwritten.filter((one) => isRecent(one) || one.dueAt < Infinity);
    for (const { id: placeId, deskId, kinds } of this.#places) {
      if (deskId !== notice.deskId || kinds?.includes(notice.kind) === false) continue;
      const recent = this.#unwritten.filter((one) => one.placeId === placeId && isRecent(one));
      const suppressed = this.#suppressed.get(placeId) ?? 0;
      const isOver = recent.length >= NOTICES_PER_HOUR_MAX;
      this.#suppressed.set(placeId, isOver ? suppressed + 1 : 0);
      if (isOver) continue;
      this.#unwritten.push({
        id: ulid(now),
        placeId,
        createdAt: now,
        attempts: 0,
        isTest: false,
        notice: { ...notice, suppressed },
        dueAt: now,
      });
    }
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#attempt(() => this.#look());
      this.#sendUnwritten();
      const woken = Promise.withResolvers<void>();
      this.#wake = woken.resolve;
      const timer = setTimeout(woken.resolve, LOOK_EVERY_MS).unref();
      if (!this.#stopping.signal.aborted) await woken.promise;
      clearTimeout(timer);
    }
  }

  async #look(): Promise<void> {
    const { notices, now } = this.#options;
    await this.#takeTurn();
    if (!this.#hasTurn) return;
    try {
      await this.#settleAll();
    } finally {
      await this.#sendDue();
    }
    if (now() < this.#forgetAt) return;
    this.#forgetAt = now() + HOUR_MS;
    await this.#readPlaces();
    await notices.forgetDeliveries(now() - KEPT_MS);
  }

  async #sendDue(): Promise<void> {
    const { notices } = this.#options;
    const due = await notices.due(PLACES_AT_ONCE_MAX);
    if (due.length > 0) await this.#readPlaces();
    for (const delivery of due) {
      if (this.#unsettled.has(delivery.id)) continue;
      this.#begin(delivery, (outcome) => this.#settle(delivery.id, outcome));
    }
  }

  #sendUnwritten(): void {
    const now = this.#options.now();
    for (const delivery of this.#unwritten) {
      if (delivery.dueAt > now) continue;
      this.#begin(delivery, async (outcome) => {
        const dueAt = outcome.state === "waiting" ? outcome.retryAt : Infinity;
        const next = { ...delivery, attempts: delivery.attempts + 1, dueAt };
        this.#unwritten = this.#unwritten.map((one) => (one.id === delivery.id ? next : one));
      });
    }
  }

  /** One after another at each place, so that the end of a trouble does not arrive before its beginning. */
  #begin(delivery: DueDelivery, settle: (outcome: Outcome) => Promise<void>): void {
    const { placeId } = delivery;
    if (this.#busy.has(placeId) || this.#stopping.signal.aborted) return;
    const sent = this.#deliver(delivery, settle).finally(() => {
      this.#busy.delete(placeId);
      this.#wake();
    });
    this.#busy.set(placeId, sent);
  }

  async #deliver(
    delivery: DueDelivery,
    settle: (outcome: Outcome) => Promise<void>,
  ): Promise<void> {
    try {
      const outcome = await this.#send(delivery);
      // Aborted by the end of the server: it is sent again.
      if (outcome.state === "delivered" || !this.#stopping.signal.aborted) await settle(outcome);
    } catch (error) {
      this.#options.log.error({ err: error }, "a notice cannot be sent");
    }
  }

  async #send(delivery: DueDelivery): Promise<Outcome> {
    const { context, now, ownUrl, log } = this.#options;
    const place = this.#places.find(({ id }) => id === delivery.placeId);
    if (place === undefined) return { state: "failed", answer: "the place was removed" };
    if (delivery.isTest && now() - delivery.createdAt > TEST_MS_MAX) {
      return { state: "failed", answer: "it was too late for a test" };
    }
    const { id, notice, createdAt } = delivery;
    const link = notice.path === null ? null : `${ownUrl()}${notice.path}`;
    const message = { id, notice, desk: place.desk, link, createdAt, now: now() };
    const attempt = await send(place, message, context, this.#stopping.signal);
    const outcome = outcomeOf(attempt, delivery, now());
    logOutcome(log, place, id, outcome);
    return outcome;
  }

  async #settle(id: string, outcome: Outcome): Promise<void> {
    this.#unsettled.set(id, outcome);
    await this.#attempt(() => this.#settleAll());
  }

  async #settleAll(): Promise<void> {
    for (const [id, outcome] of this.#unsettled) {
      await this.#options.notices.settle(id, outcome);
      this.#unsettled.delete(id);
    }
  }

  async #readPlaces(): Promise<void> {
    this.#places = await this.#options.notices.sealedPlaces();
  }

  /** While the database does not answer, the server that had the turn keeps it. */
  async #takeTurn(): Promise<void> {
    const { notes, now } = this.#options;
    if (this.#hasTurn && now() < this.#turnUntil - (TURN_MS * 2) / 3) return;
    const holder = await notes.get(TURN);
    const until = now() + TURN_MS;
    if (holder === this.#me) await notes.set(TURN, this.#me, TURN_MS);
    this.#hasTurn = holder === this.#me || (await notes.add(TURN, this.#me, TURN_MS));
    this.#turnUntil = until;
  }

  /** Logs a failure once, until it ends or is another one. */
  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#problem = null;
    } catch (error) {
      const reason = messageOf(error);
      if (reason === this.#problem) return;
      this.#problem = reason;
      this.#options.log.warn({ reason }, "the queue of notices cannot be used; it is tried again");
    }
  }
}

/** Without the answer of what has arrived: it is the receiver's own. */
function logOutcome(log: Logger, place: NoticePlace, id: string, outcome: Outcome): void {
  const { id: placeId, desk, destination } = place;
  const fields = { notice: id, place: placeId, desk, destination };
  if (outcome.state === "delivered") log.debug(fields, "notice delivered");
  else if (outcome.state === "failed") {
    log.warn({ ...fields, reason: outcome.answer }, "a notice was not delivered, and is given up");
  } else
    log.info(
      { ...fields, reason: outcome.answer },
      "a notice was not delivered; it is tried again",
    );
}
