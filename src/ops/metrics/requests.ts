/** Metrics of requests. Each signal adds to them on its path: `bench/metrics.ts` measures what that costs. */
import { Counter, type Registry } from "./prom-client.ts";
import type { Acceptance, RequestObserver } from "../../domain/activity.ts";
import { type AppError, errorCatalogue, UNKNOWN_FIELD } from "../../domain/errors.ts";
import { fieldNames } from "../../domain/signal.ts";
import type { Identity, StorageFigures } from "../../domain/storage.ts";
import { type Counts, Distribution, increment, publishCount, publishCounts } from "./counts.ts";

const DURATION_BOUNDS_S = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
/** Negative: the client's clock is ahead. */
const SKEW_BOUNDS_S = [-3_600, -60, -5, -1, -0.1, 0, 0.1, 0.5, 1, 5, 60, 3_600];

/** The label of all fields that the interface does not have. */
const UNKNOWN = "unknown";

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
  readonly #duration: Distribution;
  readonly #skew: Distribution;
  readonly #deskRequests: Counter;
  /** By id: names change. */
  readonly #desks = new Map<number, DeskCounts>();
  /** When each key last sent a signal to this process; epoch milliseconds. */
  readonly #keys = new Map<string, number>();

  constructor(registry: Registry) {
    // Counters start at 0, so that the first increase is seen, too.
    for (const [error, { status }] of Object.entries(errorCatalogue)) {
      this.#statuses[status] = 0;
      this.#errors[error] = 0;
    }
    for (const field of [...fieldNames, UNKNOWN]) this.#invalidFields[field] = 0;
    const requests = {
      name: "signalbox_requests_total",
      help: "Answers to signals, and refusals, by HTTP status.",
      label: "status",
    };
    publishCounts(registry, requests, this.#statuses);
    const rejects = {
      name: "signalbox_rejects_total",
      help: "Refusals, by error code.",
      label: "error",
    };
    publishCounts(registry, rejects, this.#errors);
    const invalidFields = {
      name: "signalbox_invalid_fields_total",
      help: `Invalid fields in requests that got 422; ${UNKNOWN} stands for all fields that the interface does not have.`,
      label: "field",
    };
    publishCounts(registry, invalidFields, this.#invalidFields);
    const duplicates = { name: "signalbox_duplicates_total", help: "Signals stored before." };
    publishCount(registry, duplicates, () => this.#statuses["200"] ?? 0);
    const differing = {
      name: "signalbox_differing_duplicates_total",
      help: "Duplicates that differ from the stored signal.",
    };
    publishCount(registry, differing, () => this.#differing);
    this.#duration = new Distribution(
      registry,
      "signalbox_request_duration_seconds",
      "From a request's headers to the commit of its signal.",
      DURATION_BOUNDS_S,
    );
    this.#skew = new Distribution(
      registry,
      "signalbox_clock_skew_seconds",
      "received_at minus signal_time, of signals that have one.",
      SKEW_BOUNDS_S,
    );
    this.#deskRequests = new Counter({
      name: "signalbox_desk_requests_total",
      help: "Requests with a key of the desk: stored, duplicate, rejected (4xx) or failed (5xx).",
      labelNames: ["desk", "outcome"],
      registers: [registry],
    });
  }

  accepted(owner: Identity, acceptance: Acceptance): void {
    const { receivedAt, signalTime, appended, durationMs } = acceptance;
    this.#duration.add(durationMs / 1_000);
    if (signalTime !== null) this.#skew.add((receivedAt - signalTime) / 1_000);
    this.#keys.set(owner.keyId, receivedAt);
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
    if (owner !== null) this.#countsOf(owner.deskId)[status < 500 ? "rejected" : "failed"] += 1;
    const fields = Object.entries(error?.detail.fields ?? {}).map(([name, reason]) =>
      // Clients make up the names of unknown fields.
      reason === UNKNOWN_FIELD ? UNKNOWN : name,
    );
    for (const field of new Set(fields)) increment(this.#invalidFields, field);
  }

  /** When the key last sent a signal to this process; epoch milliseconds. */
  lastUseOf(keyId: string): number | null {
    return this.#keys.get(keyId) ?? null;
  }

  /** Shows the counts of these desks, under their present names. */
  show(desks: StorageFigures["desks"]): void {
    this.#deskRequests.reset();
    for (const { id, name } of desks) {
      for (const [outcome, count] of Object.entries(this.#countsOf(id))) {
        this.#deskRequests.inc({ desk: name, outcome }, count);
      }
    }
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
