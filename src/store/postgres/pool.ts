/** Connections to the primary, and what becomes of them when it fails. */
import { parseStoreUrl, type StoreUrl } from "../../lib/store-url.ts";
import { connect, type Pg } from "./connect.ts";
import { isBroken } from "./failures.ts";
import { findPrimary } from "./primary.ts";

interface PoolOptions {
  /** Connections at once. */
  readonly max: number;
  /** A warning may mean that a commit was not replicated. */
  readonly onWarning?: (code: string) => void;
  /** After so long, the connections are given up. */
  readonly workMsMax?: number;
  /** The connections were given up. */
  readonly onLost?: () => void;
}

/** Bots and browsers do not wait longer. */
const WORK_MS_MAX = 10_000;
/** Before hosts are asked again of which none was the primary: each answer costs a server that starts a process. */
const PAUSE_MS = 100;
/** For what reads everything. No timer runs for longer. */
export const WITHOUT_END_MS = 2 ** 31 - 1;

/**
 * For each session. A server that is frozen or cut off in a transaction must not keep the lock that all others need.
 * Waiting for a lock ends before {@link WORK_MS_MAX}: otherwise the session would go on waiting after its client is gone.
 */
const SETTINGS = {
  application_name: "signalbox",
  idle_in_transaction_session_timeout: "10s",
  lock_timeout: "8s",
  // Others may be set for the role or the database.
  statement_timeout: "0",
  default_transaction_isolation: "read committed",
  default_transaction_read_only: "off",
  bytea_output: "hex",
  extra_float_digits: "1",
  jit: "off",
};

/**
 * Connections to the primary. When one of them is lost or does not answer, all are given up, and whatever waits for
 * them fails: after a fail-over, none may stay on the old primary. The next work looks for the primary again.
 */
export class Pool {
  readonly #url: StoreUrl;
  readonly #options: PoolOptions;
  #opened: Promise<Pg> | null = null;
  /** Rises when connections are given up. */
  generation = 0;

  /** Makes no connection yet: the first work does. */
  constructor(url: string, options: PoolOptions) {
    this.#url = parseStoreUrl(url);
    this.#options = options;
  }

  /** `until`: a moment of `performance.now()`. */
  async use<T>(
    work: (pg: Pg) => PromiseLike<T>,
    until = performance.now() + (this.#options.workMsMax ?? WORK_MS_MAX),
  ): Promise<T> {
    const opened = this.#open();
    const timer = setTimeout(() => this.#lose(opened), Math.max(0, until - performance.now()));
    try {
      const pg = await opened;
      return await this.#work(opened, work(pg));
    } finally {
      clearTimeout(timer);
    }
  }

  async #work<T>(opened: Promise<Pg>, working: PromiseLike<T>): Promise<T> {
    try {
      return await working;
    } catch (error) {
      if (isBroken(error)) this.#lose(opened);
      throw error;
    }
  }

  /** Gives up the connections. */
  renew(): void {
    const opened = this.#opened;
    if (opened === null) return;
    this.#opened = null;
    this.generation += 1;
    void end(opened, 0);
  }

  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = null;
    if (opened !== null) await end(opened, 1);
  }

  #open(): Promise<Pg> {
    return (this.#opened ??= this.#find());
  }

  #find(): Promise<Pg> {
    const opened: Promise<Pg> = (async () => {
      const { host, commit } = await findPrimary(this.#url);
      return connect(this.#url, host, {
        ...this.#options,
        settings: { ...SETTINGS, synchronous_commit: commit },
        onClose: () => this.#lose(opened),
      });
    })();
    opened.catch(() => {
      setTimeout(() => {
        if (this.#opened === opened) this.#opened = null;
      }, PAUSE_MS).unref();
    });
    return opened;
  }

  #lose(opened: Promise<Pg>): void {
    if (this.#opened !== opened) return;
    this.renew();
    this.#options.onLost?.();
  }
}

async function end(opened: Promise<Pg>, timeout: number): Promise<void> {
  try {
    await (await opened).end({ timeout });
  } catch {
    // It was not opened, which the work was told that waited for it.
  }
}
