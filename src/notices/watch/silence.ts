/** A desk sends nothing for longer than usual, or than it chose. */
import { type Usual, usually, usualFrom, usualOf, usualRate } from "../../domain/activity/usual.ts";
import { isSilent, SILENCE_MS_MIN } from "../../domain/desk/silence.ts";
import type { WatchedDesk } from "../../domain/storage/notices.ts";
import { MINUTE_MS } from "../../lib/text/time.ts";
import { describeSpan, formatTime } from "../../lib/text/words.ts";
import type { Chapter, Symptom } from "./book.ts";
import type { RowMaker, Sources } from "./row.ts";

const EVERY_MS = MINUTE_MS / 2;
/** Desks whose hours are read in one look: the others' are read in the next ones. */
const READ_MAX = 100;

type Silent = WatchedDesk & { readonly newestAt: number };

export const silence: RowMaker = (sources, book) => {
  const usuals = new Usuals(sources);
  const newest = new Map<number, number>();
  const chapter: Chapter = {
    owns: ({ kind }) => kind === "silence",
    end: ({ deskId, count }) => ({
      title: "Signals arrive again",
      text: `The latest came at ${formatTime(newest.get(deskId ?? 0) ?? null)}. Before, there was none since ${formatTime(count)}.`,
      path: "/signals",
    }),
  };
  return {
    everyMs: EVERY_MS,
    look: async ({ now, watched, isWatched }) => {
      const ids = watched.desks.map(({ id }) => id);
      newest.clear();
      for (const { deskId, at } of await sources.notices.newestSignals(ids)) newest.set(deskId, at);
      const quiet = watched.desks.flatMap((desk): Silent[] => {
        const newestAt = newest.get(desk.id);
        return newestAt === undefined ? [] : [{ ...desk, newestAt }];
      });
      const usual = await usuals.read(quiet, now);
      const symptoms = quiet.flatMap((desk): Symptom[] => {
        const { id: deskId, newestAt, silence: rule } = desk;
        const about = { kind: "silence", deskId, subject: "", count: newestAt } as const;
        const rate = usual.get(deskId) ?? null;
        const words = () => wordsOf(desk, rate, now);
        if (isSilent(newestAt, rule, rate, now)) return [{ ...about, words }];
        // Outside its hours, or at a time of day at which it is usually silent, it has not ended.
        const isSame = book.find("silence", deskId, "")?.count === newestAt;
        return isSame ? [{ ...about, words, is: "held" }] : [];
      });
      await book.settle(chapter, symptoms, isWatched);
    },
  };
};

function wordsOf({ newestAt, silence: { spanMs } }: Silent, usual: Usual | null, now: number) {
  const why =
    spanMs !== null
      ? `this desk chose to be told after ${describeSpan(spanMs)}`
      : usually(usual === null ? 0 : usualRate(usual, now));
  const silent = now - newestAt;
  return {
    title: `No signal for ${describeSpan(silent - (silent % MINUTE_MS))}`,
    text: `The latest came at ${formatTime(newestAt)}; ${why}.`,
    path: "/signals",
  };
}

/** What desks usually send, which is the same for an hour of the clock. */
class Usuals {
  readonly #sources: Pick<Sources, "activity">;
  #from = 0;
  readonly #known = new Map<number, Usual | null>();

  constructor(sources: Pick<Sources, "activity">) {
    this.#sources = sources;
  }

  async read(desks: readonly Silent[], now: number): Promise<ReadonlyMap<number, Usual | null>> {
    const from = usualFrom(now);
    if (from !== this.#from) this.#known.clear();
    this.#from = from;
    const missing = desks
      .filter(
        ({ id, newestAt, silence: { spanMs } }) =>
          spanMs === null && now - newestAt > SILENCE_MS_MIN && !this.#known.has(id),
      )
      .map(({ id }) => id)
      .slice(0, READ_MAX);
    if (missing.length === 0) return this.#known;
    const span = { width: "hour", from } as const;
    const buckets = await this.#sources.activity.bucketsOfDesks(missing, span);
    const ofDesk = Map.groupBy(buckets, ({ deskId }) => deskId);
    for (const id of missing) this.#known.set(id, usualOf(ofDesk.get(id) ?? [], now));
    return this.#known;
  }
}
