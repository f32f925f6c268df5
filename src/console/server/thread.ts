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
import { workerUrl } from "../../lib/workers.ts";
import type { ActivityRecorder } from "../pages/activity/recorder.ts";

export interface ConsoleOptions {
  readonly listen: Address;
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
}

export type ToConsole =
  | { readonly type: "open"; readonly options: ConsoleOptions }
  | { readonly type: "certificate"; readonly certificate: Certificate }
  | { readonly type: "activity"; readonly batch: ActivityBatch }
  | { readonly type: "outage"; readonly outage: Outage | null }
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

type Failed = FromConsole & { type: "failed" };

export class ConsoleThread {
  readonly #worker = new Worker(workerUrl("console/server/console.worker.ts"));
  readonly #log: Logger;
  readonly #recorder: ActivityRecorder;
  readonly #opened = Promise.withResolvers<string>();
  readonly #closed = Promise.withResolvers<void>();
  #url = "";
  #isDead = false;
  #watch: Timer | undefined;
  /** Why the console does not work as it should, or null. */
  problem: string | null = null;

  private constructor(options: ConsoleOptions, log: Logger, recorder: ActivityRecorder) {
    this.#log = log;
    this.#recorder = recorder;
    this.#worker.onmessage = ({ data }) => this.#receive(data as FromConsole, options);
    this.#worker.onerror = ({ message }) => this.#die(message);
    this.#post({ type: "open", options });
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

  /** Keeps the thread informed of whether signals are stored. */
  watch(read: () => Outage | null): void {
    let told: string | undefined;
    this.#watch = setInterval(() => {
      const outage = read();
      const now = JSON.stringify(outage);
      if (now === told) return;
      told = now;
      this.#post({ type: "outage", outage });
    }, OUTAGE_EVERY_MS).unref();
  }

  replaceCertificate(certificate: Certificate): void {
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
    if (this.#isDead) return;
    this.#post({ type: "close" });
    await this.#closed.promise;
    this.#worker.terminate();
  }

  #receive(message: FromConsole, { listen }: ConsoleOptions): void {
    switch (message.type) {
      case "ready":
        this.#opened.resolve(message.url);
        break;
      case "failed":
        this.#opened.reject(errorOf(message, listen));
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

  /** The server goes on without the console. */
  #die(reason: string): void {
    this.#isDead = true;
    this.problem = `it crashed: ${reason}`;
    this.#opened.reject(new Error(reason));
    this.#closed.resolve();
    if (this.#url === "") return;
    this.#log.error({ reason }, "the console crashed; restart signalbox");
  }

  #post(message: ToConsole): void {
    this.#worker.postMessage(message);
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
