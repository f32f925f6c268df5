/** What the checks of `src/checks/` find, for the operator: of each server. */
import { type CheckFinding, type CheckKind, noticeKinds } from "../../domain/notice/notice.ts";
import { MINUTE_MS } from "../../lib/text/time.ts";
import type { Chapter, Symptom } from "./book.ts";
import type { RowMaker } from "./row.ts";

const endings: Readonly<Record<CheckKind, string>> = {
  backup: "Backups are in order again",
  certificate: "The certificate is in order again",
  disk: "The disk has space again",
  damaged: "No damaged signal was found since the server started",
  clock: "The clock is right again",
};

export const checks: RowMaker = ({ findings, node }, book) => {
  const at = node === "" ? "" : ` of server ${node}`;
  const of = node === "" ? "" : ` (server ${node})`;
  let found = new Map<string, CheckFinding[]>();
  const chapter: Chapter = {
    owns: ({ kind, deskId, subject }) => deskId === null && kind in endings && subject.endsWith(at),
    end: ({ kind, subject }) => {
      const good = found.get(subject);
      // The check is not made any more, because another configuration has nothing to check.
      if (good === undefined) return null;
      return { title: `${endings[kind as CheckKind]}${of}`, text: textOf(good), path: null };
    },
  };
  return {
    everyMs: MINUTE_MS,
    isOffline: true,
    look: async ({ isWatched }) => {
      if (!isWatched(null)) return book.settle(chapter, [], isWatched);
      const made = await findings();
      if (made === null) return;
      found = Map.groupBy(made, ({ name }) => `${name}${at}`);
      const symptoms = [...found].flatMap(([subject, ofCheck]): Symptom[] => {
        const bad = ofCheck.filter(({ isOk }) => !isOk);
        const [first] = bad;
        if (first === undefined) return [];
        const { notice: kind } = first;
        const words = () => ({
          title: `${noticeKinds[kind].title}${of}`,
          text: textOf(bad),
          path: null,
        });
        return [{ kind, deskId: null, subject, words }];
      });
      await book.settle(chapter, symptoms, isWatched);
    },
  };
};

function textOf(findings: readonly CheckFinding[]): string {
  return findings
    .map(({ sentence, next }) => (next === null ? sentence : `${sentence} Next: ${next}.`))
    .join("\n");
}
