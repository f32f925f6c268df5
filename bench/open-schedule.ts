/**
 * Sends requests at a fixed mean rate, like many independent clients: the gaps between them are random (a
 * Poisson process). Latency counts from when a request was due, so the time that a request waits for a free
 * connection is included (no coordinated omission). As a program: bun bench/open-schedule.ts LOAD, which is an
 * {@link OpenLoad} in JSON.
 */
import { createHistogram } from "node:perf_hooks";
import { type IdKind, type LoadResult, newId } from "./load.ts";
import { OpenConnection } from "./open-connection.ts";
import { body, ID_PLACEHOLDER } from "./signal.ts";

export interface OpenLoad {
  readonly port: number;
  readonly key: string;
  readonly connections: number;
  readonly rate_per_s: number;
  readonly seconds: number;
  readonly ids: IdKind;
}

export type OpenResult = Omit<LoadResult, "cpu_us">;

/** After the last request was sent. */
export const ANSWER_MS_MAX = 15_000;

/** Requests of this first time are not counted: this client's code is still being compiled. */
const WARM_UP_MS = 500;

/** Between two looks at the schedule; shorter, this client would take a core from the server. */
const PAUSE_MS = 0.1;
const LATENCY_US_MAX = 3_600_000_000;

const pauseCell = new Int32Array(new SharedArrayBuffer(4));

export class OpenSchedule {
  readonly #load: OpenLoad;
  readonly #head: string;
  readonly #tail: string;
  readonly #idle: OpenConnection[] = [];
  /** When each unsent request was due. */
  readonly #late: number[] = [];
  #lateFirst = 0;
  #underWay = 0;
  #answered = 0;
  #countsFrom = 0;
  readonly #latencies_us = createHistogram({ lowest: 1, highest: LATENCY_US_MAX, figures: 3 });

  private constructor(load: OpenLoad) {
    this.#load = load;
    const { port, key } = load;
    const head = `POST /v1/signals HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
    const [before = "", after = ""] = body.split(ID_PLACEHOLDER);
    this.#head = head + before;
    this.#tail = after;
  }

  /** Opens all connections before the first request is due. */
  static async connect(load: OpenLoad): Promise<OpenSchedule> {
    const schedule = new OpenSchedule(load);
    for (let opened = 0; opened < load.connections; opened += 1) {
      // One by one: all at once would overrun the backlog of a server that is slow to accept.
      schedule.#idle.push(await OpenConnection.open(load.port));
    }
    return schedule;
  }

  /** Throws where a request is not answered within {@link ANSWER_MS_MAX} of the end. */
  async run(): Promise<OpenResult> {
    const start = performance.now();
    this.#countsFrom = start + WARM_UP_MS;
    const end = this.#countsFrom + this.#load.seconds * 1_000;
    let due = start + this.#gapMs();
    for (let now = start; ; now = performance.now()) {
      for (; due <= now && due < end; due += this.#gapMs()) this.#late.push(due);
      this.#sendLate();
      if (due >= end && this.#underWay === 0) break;
      if (now > end + ANSWER_MS_MAX) throw new Error(`${this.#underWay} requests had no answer`);
      Atomics.wait(pauseCell, 0, 0, PAUSE_MS);
      // Lets the answers in.
      await new Promise(setImmediate);
    }
    return this.#result(performance.now() - start);
  }

  #gapMs(): number {
    return (-Math.log(1 - Math.random()) / this.#load.rate_per_s) * 1_000;
  }

  #sendLate(): void {
    for (; this.#lateFirst < this.#late.length; this.#lateFirst += 1) {
      // In turn, or a few connections would have it all.
      const connection = this.#idle.shift();
      if (connection === undefined) return;
      this.#send(connection, this.#late[this.#lateFirst] as number);
    }
    this.#late.length = 0;
    this.#lateFirst = 0;
  }

  #send(connection: OpenConnection, due: number): void {
    this.#underWay += 1;
    connection.send(this.#head + newId(this.#load.ids) + this.#tail, () => {
      this.#underWay -= 1;
      this.#answered += 1;
      if (due >= this.#countsFrom) this.#record(performance.now() - due);
      this.#idle.push(connection);
      this.#sendLate();
    });
  }

  #record(latency_ms: number): void {
    this.#latencies_us.record(Math.max(1, Math.round(latency_ms * 1_000)));
  }

  #result(duration_ms: number): OpenResult {
    const latencies = this.#latencies_us;
    return {
      requests: this.#answered,
      duration_us: duration_ms * 1_000,
      latency_us_p50: latencies.percentile(50),
      latency_us_p99: latencies.percentile(99),
      latency_us_max: latencies.max,
    };
  }
}

if (import.meta.main) {
  const load = JSON.parse(process.argv[2] ?? "{}") as OpenLoad;
  const schedule = await OpenSchedule.connect(load);
  process.stdout.write(`${JSON.stringify(await schedule.run())}\n`);
  process.exit(0);
}
