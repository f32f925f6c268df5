/**
 * The console's side of the main thread. It runs on a thread of its own, with its own connection to the
 * database: a page may search or wait for a lock without holding up the thread that answers signals.
 */
import type { Logger } from "pino";
import type { ActivityBatch } from "../domain/activity.ts";
import { type Address, PortInUseError } from "../net/address.ts";
import { workerUrl } from "../workers.ts";
import type { ActivityRecorder } from "./activity/recorder.ts";

/** PEM texts. */
export interface ConsoleCertificate {
  readonly cert: string;
  readonly key: string;
  readonly expiresAt: number;
}

export interface ConsoleOptions {
  readonly listen: Address;
  readonly dataDir: string;
  /** What browsers call the console; null: its address. */
  readonly consoleUrl: string | null;
  /** What bots call the public interface. */
  readonly publicUrl: string;
  readonly certificate: ConsoleCertificate | null;
  readonly trustedProxies: readonly string[];
  /** Open at once. */
  readonly connectionsMax: number;
  readonly stopTimeoutMs: number;
  readonly logLevel: string;
}

/** What it works with on the main thread. */
export interface ConsoleSurroundings {
  readonly log: Logger;
  readonly recorder: ActivityRecorder;
}

export type ToConsole =
  | { readonly type: "open"; readonly options: ConsoleOptions }
  | { readonly type: "certificate"; readonly certificate: ConsoleCertificate }
  | { readonly type: "activity"; readonly batch: ActivityBatch }
  | { readonly type: "drain" }
  | { readonly type: "close" };

export type FromConsole =
  | { readonly type: "ready"; readonly address: Address; readonly url: string }
  /** It does not start: `isUserError` where a person can put it right. */
  | {
      readonly type: "failed";
      readonly reason: string;
      readonly isUserError: boolean;
      readonly isPortInUse: boolean;
    }
  | { readonly type: "log"; readonly line: string }
  /** Or could not be, and is forgotten. */
  | { readonly type: "activity written" }
  | { readonly type: "closed" };

export class ConsoleThread {
  readonly #worker: Worker;
  readonly #log: Logger;
  readonly #recorder: ActivityRecorder;
  readonly address: Address;
  readonly url: string;
  #onClosed: (() => void) | null = null;
  #isDead = false;

  private constructor(
    worker: Worker,
    { log, recorder }: ConsoleSurroundings,
    { address, url }: FromConsole & { type: "ready" },
  ) {
    this.#worker = worker;
    this.#log = log;
    this.#recorder = recorder;
    this.address = address;
    this.url = url;
  }

  /** Rejects with what `explain` makes of the reason where it cannot start. */
  static async start(
    options: ConsoleOptions,
    surroundings: ConsoleSurroundings,
    explain: (reason: string) => Error,
  ): Promise<ConsoleThread> {
    const { log, recorder } = surroundings;
    const worker = new Worker(workerUrl("console.worker.ts"));
    const answer = await new Promise<FromConsole>((resolve) => {
      worker.onmessage = ({ data }) => {
        const message = JSON.parse(data as string) as FromConsole;
        if (message.type === "log") relay(log, message.line);
        else resolve(message);
      };
      worker.onerror = ({ message }) =>
        resolve({ type: "failed", reason: message, isUserError: false, isPortInUse: false });
      worker.postMessage(JSON.stringify({ type: "open", options } satisfies ToConsole));
    });
    if (answer.type !== "ready") {
      worker.terminate();
      const { reason, isUserError, isPortInUse } = answer as FromConsole & { type: "failed" };
      if (isPortInUse) throw new PortInUseError(options.listen);
      throw isUserError ? explain(reason) : new Error(reason);
    }
    const thread = new ConsoleThread(worker, surroundings, answer);
    worker.onmessage = ({ data }) => thread.#receive(JSON.parse(data as string) as FromConsole);
    worker.onerror = ({ message }) => thread.#die(message);
    recorder.start((batch) => thread.#post({ type: "activity", batch }));
    return thread;
  }

  replaceCertificate(certificate: ConsoleCertificate): void {
    this.#post({ type: "certificate", certificate });
  }

  /** Takes no new connection from now on. */
  drain(): void {
    this.#post({ type: "drain" });
  }

  /** Lets what is under way be answered, and writes down what the requests came to. */
  async close(): Promise<void> {
    this.#recorder.stop();
    if (this.#isDead) return;
    await new Promise<void>((resolve) => {
      this.#onClosed = resolve;
      this.#post({ type: "close" });
    });
    this.#worker.terminate();
  }

  /** Signals go on without it. */
  #die(reason: string): void {
    this.#isDead = true;
    this.#log.error(
      { reason },
      "the console has ended by a defect; restart signalbox to have it back",
    );
    this.#onClosed?.();
  }

  #post(message: ToConsole): void {
    this.#worker.postMessage(JSON.stringify(message));
  }

  #receive(message: FromConsole): void {
    if (message.type === "log") relay(this.#log, message.line);
    else if (message.type === "activity written") this.#recorder.written();
    else if (message.type === "closed") this.#onClosed?.();
  }
}

/** One thread writes the log. An error in the line is text by now, and stays as it is. */
function relay(log: Logger, line: string): void {
  const { level, time: _, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const name = level as "debug" | "info" | "warn" | "error";
  log.child({}, { serializers: { err: (err: unknown) => err } })[name](fields, String(msg));
}
