/**
 * The console as the main thread sees it. It runs on a thread of its own, with its own connection to the
 * database: a page may search or wait for a lock without holding up the thread that answers signals.
 */
import type { Logger } from "pino";
import type { ActivityBatch } from "../../domain/activity/activity.ts";
import { UserError } from "../../lib/errors.ts";
import type { Outage } from "../../domain/storage/append.ts";
import { type Address, PortInUseError } from "../../http/address.ts";
import type { Certificate } from "../../http/tls.ts";
import type { NoticeSettings } from "../../notices/settings.ts";
import type { ServerStatus } from "../../ops/server.ts";
import { workerUrl } from "../../lib/workers.ts";
import type { ActivityRecorder } from "../pages/activity/recorder.ts";

export interface ConsoleOptions {
  readonly listen: Address;
  /** The server's own folder. */
  readonly dataDir: string;
  /** As `store/open.ts` takes it. */
  readonly storage: string;
  /** The console's public URL; null: its address. */
  readonly consoleUrl: string | null;
  /** The public URL of the interface for bots. */
  readonly publicUrl: string;
  readonly certificate: Certificate | null;
  readonly trustedProxies: readonly string[];
  /** Open at once, while the process has more than the total. */
  readonly connectionsMax: number;
  readonly connectionsTotal: number;
  readonly stopTimeoutMs: number;
  readonly logLevel: string;
  readonly notices: NoticeSettings;
}

export type ToConsole =
  | { readonly type: "open"; readonly options: ConsoleOptions }
  | { readonly type: "certificate"; readonly certificate: Certificate }
  | { readonly type: "activity"; readonly batch: ActivityBatch }
  | { readonly type: "outage"; readonly outage: Outage | null }
  | { readonly type: "status"; readonly status: ServerStatus }
  /** Takes no new connection from now on. */
  | { readonly type: "drain" }
  | { readonly type: "close" };

export type FromConsole =
  | { readonly type: "ready"; readonly url: string }
  | {
      readonly type: "failed";
      readonly reason: string;
      readonly cause: "port in use" | "user error" | "defect";
    }
  | { readonly type: "log"; readonly line: string }
  | { readonly type: "activity written" }
  /** Why it does not work as it should; null: it does again. */
  | { readonly type: "problem"; readonly problem: string | null }
  | { readonly type: "closed" };

/** How often the thread is told whether signals are stored. */
const OUTAGE_EVERY_MS = 1_000;
/** How often it is told what checks ask of the server. */
const STATUS_EVERY_MS = 30_000;
/** Before a thread that has crashed is started again. */
const RESTART_AFTER_MS = 1_000;

type Failed = FromConsole & { type: "failed" };

export class ConsoleThread {
  readonly #log: Logger;
  readonly #recorder: ActivityRecorder;
  #options: ConsoleOptions;
  #worker: Worker;
  readonly #opened = Promise.withResolvers<string>();
  #closed = Promise.withResolvers<void>();
  #url = "";
  #isDead = false;
  #isClosing = false;
  #restart: Timer | undefined;
  #watch: Timer | undefined;
  /** What the thread was told last of an outage, as JSON. */
  #told: string | undefined;
  #statusDue = 0;
  /** Why the console does not work as it should, or null. */
  problem: string | null = null;

  private constructor(options: ConsoleOptions, log: Logger, recorder: ActivityRecorder) {
    this.#log = log;
    this.#recorder = recorder;
    this.#options = options;
    this.#worker = this.#begin();
  }

  /** Rejects with a `UserError` for what a person can fix. */
  static async start(
    options: ConsoleOptions,
    log: Logger,
    recorder: ActivityRecorder,
  ): Promise<ConsoleThread> {
    const thread = new ConsoleThread(options, log, recorder);
    try {
      thread.#url = await thread.#opened.promise;
    } catch (error) {
      thread.#worker.terminate();
      throw error;
    }
    recorder.start((batch) => thread.#post({ type: "activity", batch }));
    return thread;
  }

  get url(): string {
    return this.#url;
  }

  /** Keeps the thread informed of whether signals are stored, and of the rest. */
  watch(read: () => Outage | null, status: () => ServerStatus): void {
    this.#watch = setInterval(() => {
      const outage = read();
      if (performance.now() >= this.#statusDue && !this.#isDead) {
        this.#statusDue = performance.now() + STATUS_EVERY_MS;
        this.#post({ type: "status", status: status() });
      }
      const now = JSON.stringify(outage);
      if (now === this.#told || this.#isDead) return;
      this.#told = now;
      this.#post({ type: "outage", outage });
    }, OUTAGE_EVERY_MS).unref();
  }

  replaceCertificate(certificate: Certificate): void {
    this.#options = { ...this.#options, certificate };
    this.#post({ type: "certificate", certificate });
  }

  /** Takes no new connection from now on. */
  drain(): void {
    this.#post({ type: "drain" });
  }

  /** Answers the requests in flight, and writes down the last activity. */
  async close(): Promise<void> {
    this.#recorder.stop();
    clearInterval(this.#watch);
    clearTimeout(this.#restart);
    this.#isClosing = true;
    if (this.#isDead) {
      this.#worker.terminate();
      return;
    }
    this.#post({ type: "close" });
    await this.#closed.promise;
    this.#worker.terminate();
  }

  #begin(): Worker {
    const worker = new Worker(workerUrl("console/server/console.worker.ts"));
    worker.onmessage = ({ data }) => this.#receive(data as FromConsole);
    worker.onerror = ({ message }) => this.#die(message);
    worker.postMessage({ type: "open", options: this.#options } satisfies ToConsole);
    return worker;
  }

  #receive(message: FromConsole): void {
    switch (message.type) {
      case "ready":
        this.#opened.resolve(message.url);
        this.#revive();
        break;
      case "failed":
        this.#opened.reject(errorOf(message, this.#options.listen));
        if (this.#isDead) this.#die(message.reason);
        break;
      case "log":
        relay(this.#log, message.line);
        break;
      case "activity written":
        this.#recorder.written();
        break;
      case "problem":
        this.problem = message.problem;
        break;
      case "closed":
        this.#closed.resolve();
    }
  }

  /** The server goes on without the console, and starts it again. */
  #die(reason: string): void {
    const isKnown = this.problem === `it crashed: ${reason}`;
    this.#isDead = true;
    this.problem = `it crashed: ${reason}`;
    this.#opened.reject(new Error(reason));
    this.#closed.resolve();
    if (this.#url === "" || this.#isClosing) return;
    if (!isKnown) this.#log.error({ reason }, "the console crashed; it is started again");
    // Its port, too, is free then.
    this.#worker.terminate();
    clearTimeout(this.#restart);
    this.#restart = setTimeout(() => (this.#worker = this.#begin()), RESTART_AFTER_MS);
  }

  #revive(): void {
    if (!this.#isDead) return;
    this.#isDead = false;
    this.#closed = Promise.withResolvers();
    this.#told = undefined;
    this.#statusDue = 0;
    this.problem = null;
    // What the other one had is lost.
    this.#recorder.written();
    this.#log.info("the console runs again");
  }

  #post(message: ToConsole): void {
    if (!this.#isDead) this.#worker.postMessage(message);
  }
}

function errorOf({ reason, cause }: Failed, listen: Address): Error {
  if (cause === "port in use") return new PortInUseError(listen);
  return cause === "user error"
    ? new UserError(
        `The console cannot start: ${reason.replace(/\.$/, "")}. Change --console-listen, or turn it off.`,
      )
    : new Error(reason);
}

/** Only the main thread writes the log. An error in the line is text by now. */
function relay(log: Logger, line: string): void {
  const { level, time: _, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const name = level as "debug" | "info" | "warn" | "error";
  log.child({}, { serializers: { err: (err: unknown) => err } })[name](fields, String(msg));
}
