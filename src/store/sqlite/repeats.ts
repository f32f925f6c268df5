/**
 * Remembers duplicates that the writer has just answered, so that those that come again and again need
 * not cross to its thread each time.
 *
 * Such an answer stays true: a stored signal is never removed, and its id never changes. It is given
 * only to what would cross to the writer as the same text, with the same key, so whatever differs is
 * still counted and named there. And it is given for a short time only, because the writer also notes
 * when a key was last used.
 */
import type { Signal } from "../../domain/signal.ts";
import type { Appended, Submission } from "../../domain/store.ts";

/** Well below how often the writer notes a key's last use. */
export const REPEAT_FRESH_MS = 30_000;
/** The oldest go first. */
export const REPEATS_MAX = 4_096;
/** UTF-16 units of what they contain, beside one signal more: 2 MiB at most. */
export const REPEATS_UNITS_MAX = 1_048_576;

interface Repeat {
  readonly keyId: string;
  /** A text of its own: a field may be a piece of the request's body, and would hold all of it in memory. */
  readonly content: string;
  readonly appended: Appended;
  /** When the writer said so, by `performance.now()`. */
  readonly at: number;
}

export class RepeatMemory {
  /**
   * Two halves: when the newer one is full the older one goes as a whole. (The first entry of one `Map`
   * is found by passing over all that were deleted before it: 4 µs with so many.)
   */
  #newer = new Map<string, Repeat>();
  #older = new Map<string, Repeat>();
  #newerUnits = 0;
  #newestAt = 0;
  #isClosed = false;

  /** What the writer would answer, as it did a short time ago; null where it has to be asked. */
  find({ keyId, deskId, signal }: Submission): Appended | null {
    if (this.#newer.size === 0 || signal.client_signal_id === null) return null;
    const now = performance.now();
    if (now - this.#newestAt >= REPEAT_FRESH_MS) {
      this.#clear();
      return null;
    }
    const name = nameOf(deskId, signal.client_signal_id);
    const repeat = this.#newer.get(name) ?? this.#older.get(name);
    if (repeat === undefined || now - repeat.at >= REPEAT_FRESH_MS) return null;
    return repeat.keyId === keyId && repeat.content === contentOf(signal) ? repeat.appended : null;
  }

  /** To be told of the writer's answers as they come. New signals and what differs are passed over. */
  note({ keyId, deskId, signal }: Submission, appended: Appended): void {
    if (!appended.deduped || appended.differs.length > 0 || this.#isClosed) return;
    if (signal.client_signal_id === null) return;
    const content = contentOf(signal);
    const isFull =
      this.#newer.size >= REPEATS_MAX / 2 ||
      this.#newerUnits + content.length > REPEATS_UNITS_MAX / 2;
    if (isFull) {
      this.#older = this.#newer;
      this.#newer = new Map();
      this.#newerUnits = 0;
    }
    this.#newestAt = performance.now();
    this.#newerUnits += content.length;
    const repeat = { keyId, content, appended, at: this.#newestAt };
    this.#newer.set(nameOf(deskId, signal.client_signal_id), repeat);
  }

  /** From now on nothing is remembered. */
  close(): void {
    this.#isClosed = true;
    this.#clear();
  }

  #clear(): void {
    this.#newer = new Map();
    this.#older = new Map();
    this.#newerUnits = 0;
  }
}

function nameOf(deskId: number, clientSignalId: string): string {
  return `${deskId}:${clientSignalId}`;
}

/** As it crosses to the writer. */
function contentOf(signal: Signal): string {
  return JSON.stringify(signal);
}
