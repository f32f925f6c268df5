/** What the operator does after each reason that ends a server. docs/runbook.md has more. */
import type { Newest } from "../../records/queue.ts";

const RESTORE = "verify the database, and restore a backup if it is not sound";

const steps: readonly (readonly [reason: RegExp, step: string])[] = [
  [/^SQLITE_(CORRUPT|NOTADB)/, `the database is damaged: stop signalbox, ${RESTORE}`],
  [/^SQLITE_IOERR_SHORT_READ/, `a part of the database is missing: stop signalbox, ${RESTORE}`],
  [/^SQLITE_/, "restart signalbox, and check the disk if this happens again"],
  [
    /^the database file was /,
    "unless signalbox restore did it, stop signalbox, and put the file back, or restore a backup if it was deleted",
  ],
  [/^the write-ahead log was removed .* could not be copied /, `free some space, then ${RESTORE}`],
  [/^the write-ahead log was removed /, "restart signalbox, and find what removed the log"],
  [/^the write-ahead log was emptied /, "restart signalbox, and find what emptied the log"],
  [/^the lock file was /, "look for a second server, end it, and restart signalbox"],
];

/** Reasons after which acknowledged signals may be missing, although each was on disk before its answer. */
const LOSSES =
  /^(SQLITE_IOERR_SHORT_READ|the write-ahead log was (emptied |removed .* could not be copied ))/;

/** `newest`: the newest signal that was acknowledged since the start. */
export function nextStepAfter(reason: string, newest: Newest | null): string {
  const [, step = "restart signalbox, and report this line"] =
    steps.find(([pattern]) => pattern.test(reason)) ?? [];
  if (!LOSSES.test(reason)) return step;
  const which =
    newest === null
      ? ""
      : ` (the newest acknowledged one: ${newest.id} of ${new Date(newest.receivedAt).toISOString()})`;
  return `${step}; signals of the last minutes may be lost: ask the desks to send them again${which}`;
}
