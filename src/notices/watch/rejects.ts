/** Many requests of a desk are rejected. */
import {
  type Outcomes,
  type Rejects,
  REJECT_REASONS_KEPT,
} from "../../domain/activity/activity.ts";
import { LATELY_MINUTES, latelyFrom, shareOfManyRejected } from "../../domain/activity/usual.ts";
import { SECOND_MS } from "../../lib/text/time.ts";
import { count, plural } from "../../lib/text/words.ts";
import type { Chapter, Symptom, Words } from "./book.ts";
import type { RowMaker } from "./row.ts";

const EVERY_MS = 10 * SECOND_MS;
const FIELDS_NAMED_MAX = 3;

const none: Outcomes = { stored: 0, duplicate: 0, rejected: 0 };

export const rejects: RowMaker = ({ activity }, book) => {
  let lately = new Map<number, Outcomes>();
  const chapter: Chapter = {
    owns: ({ kind }) => kind === "rejects",
    end: ({ deskId }) => ({
      title: "Few requests are rejected now",
      text: `${describe(lately.get(deskId ?? 0) ?? none)}.`,
      path: "/activity",
    }),
  };
  return {
    everyMs: EVERY_MS,
    look: async ({ now, watched, isWatched }) => {
      const since = { width: "minute", from: latelyFrom(now) } as const;
      lately = new Map();
      for (const bucket of await activity.bucketsOfDesks(
        watched.desks.map(({ id }) => id),
        since,
      )) {
        lately.set(bucket.deskId, sumOf(lately.get(bucket.deskId) ?? none, bucket));
      }
      const symptoms = [...lately].flatMap(([deskId, outcomes]): Symptom[] => {
        const share = shareOfManyRejected(outcomes);
        if (share === null) return [];
        const words = async (): Promise<Words> => {
          const limit = REJECT_REASONS_KEPT;
          const reasons = await activity.rejects({ deskId, since, limit });
          const [main] = reasons.toSorted((one, other) => other.count - one.count);
          return {
            title: `${Math.floor(share * 100)}% of the requests are rejected`,
            text: `${describe(outcomes)}.${main === undefined ? "" : ` Mostly: ${reasonOf(main)}.`}`,
            path: main === undefined ? "/activity" : `/activity/rejects/${main.id}`,
          };
        };
        return [{ kind: "rejects", deskId, subject: "", words }];
      });
      await book.settle(chapter, symptoms, isWatched);
    },
  };
};

function sumOf(one: Outcomes, other: Outcomes): Outcomes {
  return {
    stored: one.stored + other.stored,
    duplicate: one.duplicate + other.duplicate,
    rejected: one.rejected + other.rejected,
  };
}

function describe({ stored, duplicate, rejected }: Outcomes): string {
  const all = plural(stored + duplicate + rejected, "request");
  return `${count(rejected)} of ${all} of the last ${LATELY_MINUTES} minutes`;
}

/** As the bot is told. */
function reasonOf({ status, error, fields }: Rejects): string {
  const named = Object.entries(fields ?? {})
    .slice(0, FIELDS_NAMED_MAX)
    .map(([name, reason]) => `${name}: ${reason}`);
  return named.length === 0 ? `${status} ${error}` : `${status}, ${named.join("; ")}`;
}
