/**
 * The troubles that people were told of and that last. Each is one notice when it begins, one when it ends, and a
 * reminder per day. The database keeps them, so that a restart neither repeats nor forgets one; while it cannot be
 * written, they are kept in memory.
 */
import type { Notice, NoticeKind, NoticePhase, Notify } from "../../domain/notice/notice.ts";
import type { Awaitable } from "../../domain/storage/awaitable.ts";
import type { Trouble, Troubles } from "../../domain/storage/notices.ts";
import { DAY_MS, MINUTE_MS } from "../../lib/text/time.ts";

/** A trouble that comes back sooner has not ended: one that flaps is one trouble. */
const GONE_MS = MINUTE_MS;
const REMINDER_MS = DAY_MS;

/** What a notice says. `phase`: if the end of one trouble is not good news. */
export type Words = Pick<Notice, "title" | "text" | "path"> & { readonly phase?: NoticePhase };

/** A sign that a trouble lasts. */
export interface Symptom {
  readonly kind: NoticeKind;
  /** Null: for the operator. */
  readonly deskId: number | null;
  readonly subject: string;
  /** Asked for when people are told. */
  readonly words: () => Awaitable<Words>;
  /** People are told again when it changes. */
  readonly count?: number;
  /** `held`: it may have ended or not, and people are told of neither. `once`: without reminders. */
  readonly is?: "held" | "once";
}

/** A part of the troubles. */
export interface Chapter {
  readonly owns: (trouble: Trouble) => boolean;
  /** Null: nobody is told of the end. */
  readonly end: (trouble: Trouble) => Awaitable<Words | null>;
}

export class Book {
  readonly #troubles: Troubles;
  readonly #notify: Notify;
  readonly #clock: () => number;
  #known: Map<string, Trouble> | null = null;
  /** Since when a trouble shows no sign. */
  readonly #goneSince = new Map<string, number>();
  /** What is still to be written. */
  readonly #unsaved = new Map<string, Trouble>();

  constructor(troubles: Troubles, notify: Notify, clock: () => number) {
    this.#troubles = troubles;
    this.#notify = notify;
    this.#clock = clock;
  }

  /** Throws if it has not been read yet and cannot be. */
  async open(): Promise<void> {
    if (this.#known !== null) return;
    const all = await this.#troubles.listTroubles();
    this.#known = new Map(all.map((trouble) => [nameOf(trouble), trouble]));
  }

  /** Another server writes it from now on. */
  close(): void {
    this.#known = null;
    this.#goneSince.clear();
    this.#unsaved.clear();
  }

  find(kind: NoticeKind, deskId: number | null, subject: string): Trouble | null {
    return this.#open.get(nameOf({ kind, deskId, subject })) ?? null;
  }

  /** Of those that the chapter owns. */
  list({ owns }: Pick<Chapter, "owns">): Trouble[] {
    return [...this.#open.values()].filter(owns);
  }

  /** Tells of what has begun, still lasts, or ended. `isWatched`: whether anybody is told of this desk, or the operator. */
  async settle(
    chapter: Chapter,
    symptoms: readonly Symptom[],
    isWatched: (deskId: number | null) => boolean,
  ): Promise<void> {
    const signs = new Set<string>();
    for (const symptom of symptoms.filter(({ deskId }) => isWatched(deskId))) {
      const name = nameOf(symptom);
      signs.add(name);
      this.#goneSince.delete(name);
      await this.#last(symptom, this.#open.get(name));
    }
    for (const trouble of this.list(chapter)) {
      const name = nameOf(trouble);
      if (signs.has(name)) continue;
      if (!isWatched(trouble.deskId)) this.remove(trouble);
      else await this.#fade(name, trouble, chapter);
    }
  }

  async #last(symptom: Symptom, known: Trouble | undefined): Promise<void> {
    const { kind, deskId, subject, count = 0, is } = symptom;
    if (is === "held") return;
    const now = this.#clock();
    const isDue = is === undefined && now - (known?.toldAt ?? now) >= REMINDER_MS;
    if (known !== undefined && known.count === count && !isDue) return;
    await this.tell(symptom, known === undefined ? "begins" : "reminder", await symptom.words());
    this.put({ kind, deskId, subject, count, beganAt: known?.beganAt ?? now, toldAt: now });
  }

  async #fade(name: string, trouble: Trouble, { end }: Chapter): Promise<void> {
    const now = this.#clock();
    const since = this.#goneSince.get(name) ?? now;
    this.#goneSince.set(name, since);
    if (now - since < GONE_MS) return;
    const words = await end(trouble);
    if (words !== null) await this.tell(trouble, "ends", words);
    this.remove(trouble);
  }

  async tell(
    { kind, deskId, subject }: Pick<Notice, "kind" | "deskId" | "subject">,
    phase: NoticePhase,
    words: Words,
  ): Promise<void> {
    await this.#notify({ kind, deskId, subject, phase, ...words });
  }

  /** Call it after {@link tell}: a crash between the two repeats a notice, and loses none. */
  put(trouble: Trouble): void {
    this.#open.set(nameOf(trouble), trouble);
    this.#unsaved.set(nameOf(trouble), trouble);
  }

  remove(trouble: Trouble): void {
    const name = nameOf(trouble);
    this.#open.delete(name);
    this.#goneSince.delete(name);
    this.#unsaved.set(name, trouble);
  }

  /** Throws if it cannot be written now; the next call tries again. */
  async save(): Promise<void> {
    for (const [name, trouble] of this.#unsaved) {
      const isOpen = this.#open.get(name) === trouble;
      await (isOpen ? this.#troubles.saveTrouble(trouble) : this.#troubles.endTrouble(trouble));
      // It may have changed meanwhile.
      if (this.#unsaved.get(name) === trouble) this.#unsaved.delete(name);
    }
  }

  get #open(): Map<string, Trouble> {
    if (this.#known === null) throw new Error("The book is closed.");
    return this.#known;
  }
}

function nameOf({ kind, deskId, subject }: Pick<Trouble, "kind" | "deskId" | "subject">): string {
  return `${kind} ${deskId} ${subject}`;
}
