/**
 * A worker thread. Messages cross as JSON: a string is copied as it is, where an array of objects is
 * cloned member by member, which costs three times as much a signal.
 */
export class Thread<To, From> {
  readonly #worker: Worker;

  /** `file` lies beside this one, and is an entry of its own in `build.ts`. */
  constructor(file: string) {
    this.#worker = new Worker(new URL(`./${file}`, import.meta.url).href);
  }

  post(message: To): void {
    this.#worker.postMessage(JSON.stringify(message));
  }

  /** Replaces the listeners before. `onError` hears of what the thread did not catch itself. */
  listen(onMessage: (message: From) => void, onError: (reason: string) => void): void {
    this.#worker.onmessage = ({ data }) => onMessage(JSON.parse(data) as From);
    this.#worker.onerror = ({ message }) => onError(message);
  }

  /** Sends a message and resolves with the next one that comes back. Replaces the listeners before. */
  ask(message: To): Promise<From> {
    return new Promise((resolve, reject) => {
      this.listen(resolve, (reason) => reject(new Error(reason)));
      this.post(message);
    });
  }

  /** Only once it holds no database any more. */
  end(): void {
    this.#worker.terminate();
  }
}

export interface Fatal {
  readonly type: "fatal";
  readonly reason: string;
}

/**
 * The thread's own side: runs `receive` for each message. Whatever is thrown is told as `fatal`, and
 * after that nothing runs any more: not even what waits already.
 */
export class ThreadSelf<To, From> {
  readonly #worker: Worker;
  #isDead = false;

  constructor(worker: Worker, receive: (message: To) => void) {
    this.#worker = worker;
    worker.onmessage = ({ data }) => this.run(() => receive(JSON.parse(data) as To));
  }

  post(message: From | Fatal): void {
    this.#worker.postMessage(JSON.stringify(message));
  }

  run(work: () => void): void {
    if (this.#isDead) return;
    try {
      work();
    } catch (error) {
      this.#isDead = true;
      this.post({ type: "fatal", reason: error instanceof Error ? error.message : String(error) });
    }
  }
}
