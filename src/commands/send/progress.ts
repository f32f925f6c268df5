/** What `send` shows meanwhile: how far it is, or what it waits for. */
import { plural, printNote } from "../../cli/print.ts";
import { startBar } from "../../cli/progress.ts";

const SUMMARY_MS = 60_000;
/** Between two summaries. A server may give many reasons. */
const NOTES_MAX = 5;

/** One line that changes on a terminal, otherwise a note per reason and minute. */
export async function startProgress(url: string, signals: number) {
  const format = "send {bar} {percentage}% of {total} signals, {rate}/s";
  const bar = await startBar(format, signals, { rate: 0 });
  const startedAt = performance.now();
  /** Since the last summary. */
  const noted = new Set<string>();
  let done = 0;
  /** Why the server takes no signals; empty if it does. */
  let waitsFor = "";
  const waiting = (): string =>
    `Waiting for ${url} (${waitsFor}): ${plural(signals - done, "signal")} waiting, trying again`;
  const note = (): void => {
    noted.add(waitsFor);
    if (bar === null) printNote(waiting());
  };
  const timer = setInterval(() => {
    noted.clear();
    if (waitsFor !== "") note();
  }, SUMMARY_MS);
  return {
    /** A signal has its outcome. */
    add: (): void => {
      done += 1;
      waitsFor = "";
      const seconds = (performance.now() - startedAt) / 1_000;
      bar?.update(done, { rate: Math.round(done / seconds), instead: "" });
    },
    /** An attempt failed, and is followed by another. */
    retry: (reason: string): void => {
      waitsFor = reason;
      bar?.update({ instead: waiting() });
      if (!noted.has(reason) && noted.size < NOTES_MAX) note();
    },
    stop: (): void => {
      clearInterval(timer);
      bar?.stop();
    },
  };
}
