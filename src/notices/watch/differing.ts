/** Duplicates that differ from their signal: told at once, and then every ten minutes with their number. */
import type { Trouble } from "../../domain/storage/notices.ts";
import { MINUTE_MS } from "../../lib/text/time.ts";
import { plural } from "../../lib/text/words.ts";
import type { Words } from "./book.ts";
import type { RowMaker } from "./row.ts";

const PAUSE_MS = 10 * MINUTE_MS;

const owns = ({ kind }: Trouble): boolean => kind === "differing";

export const differing: RowMaker = ({ activity }, book) => {
  return {
    everyMs: 0,
    look: async ({ now, watched, isWatched }) => {
      for (const { id: deskId, differing_duplicates: total } of watched.desks) {
        const about = { kind: "differing", deskId, subject: "" } as const;
        const told = book.find("differing", deskId, "");
        // What came before anybody was told of this desk is no news.
        if (told === null) book.put({ ...about, beganAt: now, toldAt: 0, count: total });
        else if (total > told.count && now - told.toldAt >= PAUSE_MS) {
          await book.tell(about, "once", await wordsOf(deskId, total - told.count));
          book.put({ ...told, toldAt: now, count: total });
        }
      }
      for (const trouble of book.list({ owns })) {
        if (!isWatched(trouble.deskId)) book.remove(trouble);
      }
    },
  };

  async function wordsOf(deskId: number, number: number): Promise<Words> {
    // It is recorded a moment after the duplicate was answered, or may be lost.
    const [latest] = await activity.differing({ deskId, before: null, limit: 1 });
    const fields =
      latest === undefined ? "" : ` The latest differs in ${latest.differs.join(", ")}.`;
    return {
      title:
        number === 1
          ? "A duplicate differs from its signal"
          : `${plural(number, "duplicate")} differ from their signals`,
      text: `The stored signal stays as it is: a bot that uses a client_signal_id twice loses what it sends the second time.${fields}`,
      path: "/activity/differing",
    };
  }
};
