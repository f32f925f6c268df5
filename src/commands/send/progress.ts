/** What `send` shows meanwhile: how far it is, or what it waits for. */
import type { SingleBar } from "cli-progress";
import { plural, printNote } from "../../cli/print.ts";
import { startBar } from "../../cli/progress.ts";

const SUMMARY_MS = 60_000;
/** Between two summaries. A server may give many reasons. */
const NOTES_MAX = 5;

/** One line that changes on a terminal, otherwise a note per reason and minute. */
export class SendProgress {
  readonly #url: string;
  readonly #signals: number;
  readonly #bar: SingleBar | null;
  readonly #startedAt = performance.now();
  readonly #timer = setInterval(() => this.#summarise(), SUMMARY_MS);
  /** Since the last summary. */
  readonly #noted = new Set<string>();
  #done = 0;
  /** Why the server takes no signals; empty if it does. */
  #reason = "";

  private constructor(url: string, signals: number, bar: SingleBar | null) {
    this.#url = url;
    this.#signals = signals;
    this.#bar = bar;
  }

  static async start(url: string, signals: number): Promise<SendProgress> {
    const format = "send {bar} {percentage}% of {total} signals, {rate}/s";
    return new SendProgress(url, signals, await startBar(format, signals, { rate: 0 }));
  }

  /** A signal has its outcome. */
  add(): void {
    this.#done += 1;
    this.#reason = "";
    const seconds = (performance.now() - this.#startedAt) / 1_000;
    this.#bar?.update(this.#done, { rate: Math.round(this.#done / seconds), instead: "" });
  }

  /** An attempt failed, and is followed by another. */
  retry(reason: string): void {
    this.#reason = reason;
    this.#bar?.update({ instead: this.#waiting() });
    if (!this.#noted.has(reason) && this.#noted.size < NOTES_MAX) this.#note();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#bar?.stop();
  }

  #summarise(): void {
    this.#noted.clear();
    if (this.#reason !== "") this.#note();
  }

  #note(): void {
    this.#noted.add(this.#reason);
    if (this.#bar === null) printNote(this.#waiting());
  }

  #waiting(): string {
    const left = plural(this.#signals - this.#done, "signal");
    return `Waiting for ${this.#url} (${this.#reason}): ${left} waiting, trying again`;
  }
}
