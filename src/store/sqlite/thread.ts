/**
 * A worker thread. Messages are JSON text: copying a string costs a third of cloning an array of objects.
 */
import { join } from "node:path";
import { workerUrl } from "../../workers.ts";
import { DamageError, describeFailure, isUnreadable } from "./failures.ts";
import { DATABASE_NAME } from "./folder.ts";

export interface Open {
  readonly type: "open";
  readonly where: DatabaseLocation;
}

/** The database that a thread opens, and how. */
export interface DatabaseLocation {
  readonly dataDir: string;
  readonly externalCheckpoints: boolean;
}

/** Messages of every thread. Nothing follows `fatal`. */
export type FromThread =
  | { readonly type: "ready" }
  | { readonly type: "fatal"; readonly reason: string; readonly isUnreadable: boolean };

export class Thread<To, From> {
  readonly #worker: Worker;

  private constructor(file: string) {
    this.#worker = new Worker(workerUrl(`store/sqlite/${file}`));
  }

  /**
   * Starts a thread and waits until it has opened the database. `file` is in this folder, and is an entry
   * point in `build.ts`. Throws {@link DamageError}.
   */
  static async start<To, From>(file: string, where: DatabaseLocation): Promise<Thread<To, From>> {
    const thread = new Thread<To, From>(file);
    const answer = await new Promise<FromThread>((resolve) => {
      thread.listen(
        (message) => resolve(message as FromThread),
        (reason) => resolve({ type: "fatal", reason, isUnreadable: false }),
      );
      thread.post({ type: "open", where });
    });
    if (answer.type !== "fatal") return thread;
    thread.end();
    if (answer.isUnreadable)
      throw new DamageError(join(where.dataDir, DATABASE_NAME), answer.reason);
    throw new Error(answer.reason);
  }

  post(message: To | Open): void {
    this.#worker.postMessage(JSON.stringify(message));
  }

  /** Replaces the previous listeners. `onError` gets errors that the thread did not catch. */
  listen(onMessage: (message: From | FromThread) => void, onError: (reason: string) => void): void {
    this.#worker.onmessage = ({ data }) => onMessage(JSON.parse(data) as From | FromThread);
    this.#worker.onerror = ({ message }) => onError(message);
  }

  /** Call it only when the thread has closed its database. */
  end(): void {
    this.#worker.terminate();
  }
}

/**
 * The thread's own side: runs `receive` for each message. Sends `fatal` for an error, and then runs
 * nothing more, not even messages that wait already.
 */
export class ThreadSelf<To, From> {
  readonly #worker: Worker;
  #isDead = false;

  constructor(worker: Worker, receive: (message: To | Open) => void) {
    this.#worker = worker;
    worker.onmessage = ({ data }) => this.run(() => receive(JSON.parse(data) as To | Open));
  }

  post(message: From | FromThread): void {
    this.#worker.postMessage(JSON.stringify(message));
  }

  run(work: () => void): void {
    if (this.#isDead) return;
    try {
      work();
    } catch (error) {
      this.#isDead = true;
      const reason = describeFailure(error);
      this.post({ type: "fatal", reason, isUnreadable: isUnreadable(error) });
    }
  }
}
