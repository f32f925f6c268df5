/** Signals are not being stored: for desks, and of each server for the operator. */
import type { Outage } from "../../domain/storage/append.ts";
import { SECOND_MS } from "../../lib/text/time.ts";
import { describeSpan, formatTime } from "../../lib/text/words.ts";
import { type Book, type Chapter, type Words } from "./book.ts";
import type { Round, Row, RowMaker, Sources } from "./row.ts";

/** A shorter one is a pause that the retries of bots bridge. */
const OUTAGE_MS_MIN = 10 * SECOND_MS;

export const outageOfServer: RowMaker = (sources, book) =>
  rowOf(sources, book, { isOfDesks: false, about: () => [null] });

export const outageOfDesks: RowMaker = (sources, book) =>
  rowOf(sources, book, {
    isOfDesks: true,
    about: ({ watched }) => watched.desks.map(({ id }) => id),
  });

function rowOf(
  { outage, node, now: clock }: Sources,
  book: Book,
  { isOfDesks, about }: { isOfDesks: boolean; about: (round: Round) => (number | null)[] },
): Row {
  const subject = isOfDesks ? "" : node;
  const where = subject === "" ? "" : ` by server ${subject}`;
  const path = isOfDesks ? "/" : null;
  /** When the first of several outages in a row began, and when the last one ended. */
  let failedAt: number | null = null;
  let overAt: number | null = null;
  const chapter: Chapter = {
    owns: (trouble) =>
      trouble.kind === "storage" &&
      (trouble.deskId !== null) === isOfDesks &&
      trouble.subject === subject,
    end: ({ beganAt }): Words => {
      const span = (overAt ?? clock()) - (failedAt ?? beganAt);
      return {
        title: `Signals are stored again${where}`,
        text: `They were not stored for about ${describeSpan(span - (span % SECOND_MS))}. Bots that send again with the same client_signal_id lose nothing.`,
        path,
      };
    },
  };
  const began = ({ since, reason }: Outage): Words => ({
    title: `Signals are not being stored${where}`,
    text: `Since ${formatTime(since)}: ${reason}. Bots get 503, and should send again with the same client_signal_id.${isOfDesks ? "" : " The server's log says what to do."}`,
    path,
  });
  return {
    everyMs: 0,
    isOffline: true,
    look: async (round) => {
      const present = outage();
      if (present === null) overAt ??= round.now;
      else [failedAt, overAt] = [failedAt ?? present.since, null];
      const isLong = present !== null && round.now - present.since >= OUTAGE_MS_MIN;
      const symptoms = isLong
        ? about(round).map((deskId) => ({
            kind: "storage" as const,
            deskId,
            subject,
            words: () => began(present),
          }))
        : [];
      await book.settle(chapter, symptoms, round.isWatched);
      if (present === null && book.list(chapter).length === 0) failedAt = null;
    },
  };
}
