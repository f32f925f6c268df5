/**
 * A thread with a database connection of its own (`database.worker.ts`): the writer or the checkpointer.
 * Messages are JSON text: copying a string costs a third of cloning an array of objects.
 */
import type { Submission, Transaction } from "../../../domain/storage/append.ts";
import { workerUrl } from "../../../lib/workers.ts";
import type { Outcome, Refusal } from "../../records/queue.ts";

/** The database that a thread opens, and how. */
export interface DatabaseLocation {
  readonly dataDir: string;
  readonly externalCheckpoints: boolean;
}

export type ThreadRole = "writer" | "checkpointer";

/** Only the writer gets `append`, `used` and `probe`. */
export type ToThread =
  | { readonly type: "open"; readonly role: ThreadRole; readonly where: DatabaseLocation }
  | { readonly type: "append"; readonly submissions: readonly Submission[] }
  | { readonly type: "used"; readonly keyId: string; readonly at: number }
  | { readonly type: "probe" | "checkpoint" | "close" };

/** The outcomes of a batch and its times, and how many log pages are not in the database after it. */
interface Committed extends Omit<Transaction, "signals"> {
  readonly type: "committed";
  readonly outcomes: readonly Outcome[];
  readonly logPagesToCopy: number;
}

/** Nothing follows `fatal`. */
export type FromThread =
  | Committed
  | { readonly type: "probed"; readonly refusal: Refusal | null }
  | { readonly type: "opened" | "checkpointed" | "closed" }
  | { readonly type: "fatal"; readonly reason: string };

export class Thread {
  readonly #worker = new Worker(workerUrl("store/sqlite/append/database.worker.ts"));
  #isFailed = false;
  #onClosed: (() => void) | null = null;

  /** Starts a thread and waits until it has opened the database, which `openServerStorage` has checked. */
  static async start(role: ThreadRole, where: DatabaseLocation): Promise<Thread> {
    const thread = new Thread();
    const answer = await new Promise<FromThread>((resolve) => {
      thread.#receive(resolve);
      thread.post({ type: "open", role, where });
    });
    if (answer.type !== "fatal") return thread;
    thread.#worker.terminate();
    throw new Error(answer.reason);
  }

  post(message: ToThread): void {
    this.#worker.postMessage(JSON.stringify(message));
  }

  listen(receive: (message: FromThread) => void): void {
    this.#receive((message) => {
      if (message.type === "fatal") this.#isFailed = true;
      receive(message);
      if (message.type === "fatal" || message.type === "closed") this.#onClosed?.();
    });
  }

  /** Resolves when the thread has handled all earlier messages and closed its database, or has failed. */
  async close(): Promise<void> {
    if (this.#isFailed) return;
    await new Promise<void>((resolve) => {
      this.#onClosed = resolve;
      this.post({ type: "close" });
    });
    this.#worker.terminate();
  }

  #receive(receive: (message: FromThread) => void): void {
    this.#worker.onmessage = ({ data }) => receive(JSON.parse(data) as FromThread);
    // An error that the thread did not catch.
    this.#worker.onerror = ({ message: reason }) => receive({ type: "fatal", reason });
  }
}
