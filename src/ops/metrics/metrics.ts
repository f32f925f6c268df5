/** `/metrics`, in the text format of Prometheus. docs/metrics.md describes each metric. */
import type { Logger } from "pino";
import type { Transaction } from "../../domain/storage/append.ts";
import { errorCatalogue } from "../../domain/errors.ts";
import { type Counts, countsText, Distribution, increment } from "./counts.ts";
import { RequestMetrics } from "./requests.ts";
import { FigureReader, type StateSources, stateText } from "./state.ts";
import { CONTENT_TYPE } from "./text.ts";

const BATCH_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];
const WRITE_BOUNDS_S = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

export class Metrics {
  readonly requests = new RequestMetrics();
  readonly #figures: FigureReader;
  readonly #batch = new Distribution(BATCH_BOUNDS);
  readonly #transaction = new Distribution(WRITE_BOUNDS_S);
  readonly #commit = new Distribution(WRITE_BOUNDS_S);
  readonly #feedStatuses: Counts = { "200": 0 };
  #answer: Promise<string> | null = null;

  constructor(log: Logger) {
    for (const { status } of Object.values(errorCatalogue)) this.#feedStatuses[status] = 0;
    this.#figures = new FigureReader(log);
  }

  committed({ signals, durationMs, commitMs }: Transaction): void {
    this.#batch.add(signals);
    this.#transaction.add(durationMs / 1_000);
    this.#commit.add(commitMs / 1_000);
  }

  answeredReader(status: number): void {
    increment(this.#feedStatuses, status);
  }

  async respond(sources: StateSources): Promise<Response> {
    const text = await this.text(sources);
    return new Response(text, { headers: { "Content-Type": CONTENT_TYPE } });
  }

  /** Callers that come while an answer is being made get that one: however many ask, there is one at a time. */
  text(sources: StateSources): Promise<string> {
    this.#answer ??= this.#make(sources).finally(() => (this.#answer = null));
    return this.#answer;
  }

  async #make(sources: StateSources): Promise<string> {
    const figures = await this.#figures.read(sources);
    return [
      this.#batch.text("signalbox_batch_signals"),
      this.#transaction.text("signalbox_transaction_duration_seconds"),
      this.#commit.text("signalbox_commit_duration_seconds"),
      countsText("signalbox_feed_requests_total", "status", this.#feedStatuses),
      this.requests.text(figures?.desks ?? []),
      await stateText(sources, figures, (keyId) => this.requests.lastUseOf(keyId)),
    ].join("");
  }
}
