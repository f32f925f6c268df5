/** Metrics of requests. Each signal adds to them on its path: `bench/metrics.ts` measures what that costs. */
import type { Acceptance, RequestObserver } from "../../domain/activity/activity.ts";
import { type AppError, errorCatalogue, UNKNOWN_FIELD } from "../../domain/errors.ts";
import { fieldNames } from "../../domain/signal/signal.ts";
import type { Identity } from "../../domain/storage/append.ts";
import type { StorageFigures } from "../../domain/storage/figures.ts";
import { type Counts, countsText, Distribution, increment } from "./counts.ts";
import { metricText, type Sample, UNKNOWN } from "./text.ts";

const DURATION_BOUNDS_S = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
/** Negative: the client's clock is ahead. */
const SKEW_BOUNDS_S = [-3_600, -60, -5, -1, -0.1, 0, 0.1, 0.5, 1, 5, 60, 3_600];

/** More than have a series. Of the others, the storage knows the time to a minute. */
const KEYS_MAX = 1_000;

/** `rejected`: the client was at fault; `failed`: we were. */
interface DeskCounts {
  stored: number;
  duplicate: number;
  rejected: number;
  failed: number;
}

export class RequestMetrics implements RequestObserver {
  readonly #statuses: Counts = { "201": 0, "200": 0 };
  readonly #errors: Counts = {};
  readonly #invalidFields: Counts = {};
  #differing = 0;
  #unknownKeys = 0;
  readonly #duration = new Distribution(DURATION_BOUNDS_S);
  readonly #skew = new Distribution(SKEW_BOUNDS_S);
  /** By id: names change. */
  readonly #desks = new Map<number, DeskCounts>();
  /** When a key last sent a signal to this process; epoch milliseconds. */
  readonly #keys = new Map<string, number>();

  constructor() {
    // Counters start at 0, so that the first increase is seen, too.
    for (const [error, { status }] of Object.entries(errorCatalogue)) {
      this.#statuses[status] = 0;
      this.#errors[error] = 0;
    }
    for (const field of [...fieldNames, UNKNOWN]) this.#invalidFields[field] = 0;
  }

  accepted(owner: Identity, acceptance: Acceptance): void {
    const { receivedAt, signal, appended, durationMs } = acceptance;
    this.#duration.add(durationMs / 1_000);
    const { signal_time } = signal;
    if (signal_time !== null) this.#skew.add((receivedAt - signal_time) / 1_000);
    this.#useKey(owner.keyId, receivedAt);
    const desk = this.#countsOf(owner.deskId);
    if (!appended.deduped) {
      increment(this.#statuses, 201);
      desk.stored += 1;
      return;
    }
    increment(this.#statuses, 200);
    desk.duplicate += 1;
    if (appended.differs.length > 0) this.#differing += 1;
  }

  rejected(owner: Identity | null, _at: number, _requestId: string, error: AppError | null): void {
    const code = error?.code ?? "internal_error";
    const { status } = errorCatalogue[code];
    increment(this.#statuses, status);
    increment(this.#errors, code);
    if (owner === null && code === "unauthorized") this.#unknownKeys += 1;
    if (owner !== null) this.#countsOf(owner.deskId)[status < 500 ? "rejected" : "failed"] += 1;
    const fields = Object.entries(error?.detail.fields ?? {}).map(([name, reason]) =>
      // Clients make up the names of unknown fields.
      reason === UNKNOWN_FIELD ? UNKNOWN : name,
    );
    for (const field of new Set(fields)) increment(this.#invalidFields, field);
  }

  /** When the key last sent a signal to this process, if that is still known; epoch milliseconds. */
  lastUseOf(keyId: string): number | null {
    return this.#keys.get(keyId) ?? null;
  }

  /** `desks`: with their present names. */
  text(desks: StorageFigures["desks"]): string {
    const perDesk = desks.flatMap(({ id, name: desk }) =>
      Object.entries(this.#countsOf(id)).map(([outcome, count]): Sample => [
        { desk, outcome },
        count,
      ]),
    );
    return [
      countsText("signalbox_requests_total", "status", this.#statuses),
      countsText("signalbox_rejects_total", "error", this.#errors),
      countsText("signalbox_invalid_fields_total", "field", this.#invalidFields),
      metricText("signalbox_duplicates_total", this.#statuses["200"] ?? 0),
      metricText("signalbox_differing_duplicates_total", this.#differing),
      metricText("signalbox_unknown_key_requests_total", this.#unknownKeys),
      this.#duration.text("signalbox_request_duration_seconds"),
      this.#skew.text("signalbox_clock_skew_seconds"),
      metricText("signalbox_desk_requests_total", perDesk),
    ].join("");
  }

  #useKey(keyId: string, at: number): void {
    this.#keys.set(keyId, at);
    if (this.#keys.size <= KEYS_MAX) return;
    const [oldest = ""] = this.#keys.keys();
    this.#keys.delete(oldest);
  }

  #countsOf(deskId: number): DeskCounts {
    let counts = this.#desks.get(deskId);
    if (counts === undefined) {
      counts = { stored: 0, duplicate: 0, rejected: 0, failed: 0 };
      this.#desks.set(deskId, counts);
    }
    return counts;
  }
}
