/**
 * Holds the number of open connections under a limit; `Bun.serve` has none.
 *
 * A few times a second this process's own descriptors are counted. When there are too many, the
 * kernel is asked how long each connection has been quiet, and those that were quiet longest are shut
 * down; Bun then closes them as if the client had gone. So a client that sends signals keeps its
 * connection, one that only holds it loses it, and no request is the slower for it.
 */
import type { Logger } from "pino";
import { type OpenConnection, PortSockets } from "./sockets.ts";

/**
 * Over TLS each costs 4 KiB where it is idle, up to 36 KiB where a stranger does his worst, and up to
 * 110 KiB where a desk does: in all less than half of what a VM with 1 GiB has.
 */
export const CONNECTIONS_MAX_DEFAULT = 4_096;

/** People, not bots: a browser keeps up to six. */
const CONSOLE_MAX = 256;
const CONSOLE_SHARE = 1 / 4;
/** Supervisors, one or two. */
const OPS_MAX = 64;
const OPS_SHARE = 1 / 8;

const CHECK_INTERVAL_MS = 250;
/** While connections are being cut: as often as takes a tenth of the time, at most this often. */
const BUSY_INTERVAL_MS_MIN = 10;
const BUSY_SHARE = 1 / 10;
/** Otherwise a look may take this much of the time, however many connections there are. */
const QUIET_SHARE = 1 / 100;
const LINE_INTERVAL_MS = 5_000;
/** Of the descriptors that the process may open: for what arrives between two looks, and for files. */
const RESERVE_SHARE = 1 / 4;
const RESERVE_MIN = 64;

/** How many connections each interface may have open at once. */
export interface ConnectionPlan {
  readonly public: number;
  readonly console: number;
  readonly ops: number;
}

export interface ConnectionNeeds {
  /** Of the public interface; 0 for as many as there are descriptors for. */
  readonly connectionsMax: number;
  readonly hasConsole: boolean;
  readonly hasOps: boolean;
  /** How many descriptors the process may open; Infinity where that cannot be known. */
  readonly descriptorsMax: number;
}

/** Shares what `ulimit -n` allows: never more in sum, and at least five eighths for the public interface. */
export function planConnections(
  { connectionsMax, hasConsole, hasOps, descriptorsMax }: ConnectionNeeds,
  log: Logger,
): ConnectionPlan {
  const possible = connectionsPossible(descriptorsMax);
  const console = hasConsole ? shareOf(possible, CONSOLE_SHARE, CONSOLE_MAX) : 0;
  const ops = hasOps ? shareOf(possible, OPS_SHARE, OPS_MAX) : 0;
  const left = Math.max(1, possible - console - ops);
  if (connectionsMax > left) {
    log.warn(
      { connections_max: left, asked: connectionsMax, descriptors_max: descriptorsMax },
      "fewer connections than --max-connections: the process may not open enough files (ulimit -n)",
    );
  }
  return { public: connectionsMax === 0 ? left : Math.min(connectionsMax, left), console, ops };
}

function shareOf(possible: number, share: number, max: number): number {
  return Math.max(1, Math.min(max, Math.floor(possible * share)));
}

export interface ConnectionLimit {
  readonly listener: keyof ConnectionPlan;
  readonly port: number;
  readonly max: number;
  readonly log: Logger;
}

/** Starts to look; the returned function ends it. To be called on the thread that listens. */
export function limitConnections({ listener, port, max, log }: ConnectionLimit): () => void {
  const sockets = PortSockets.of(port);
  if (sockets === null) {
    log.warn({ listener }, "there is no limit on connections: it takes Linux with glibc and /proc");
    return () => {};
  }
  const guard = new ConnectionGuard(sockets, max, log.child({ listener }));
  guard.start();
  return () => guard.stop();
}

class ConnectionGuard {
  readonly #sockets: PortSockets;
  readonly #max: number;
  readonly #log: Logger;
  /** Not yet in the log. */
  #cut = 0;
  #unanswered = 0;
  #lineAt = -Infinity;
  #timer: Timer | undefined;

  constructor(sockets: PortSockets, max: number, log: Logger) {
    this.#sockets = sockets;
    this.#max = max;
    this.#log = log;
  }

  start(delayMs = CHECK_INTERVAL_MS): void {
    this.#timer = setTimeout(() => {
      const startedAt = performance.now();
      const isBusy = this.#check();
      const tookMs = performance.now() - startedAt;
      const busyMs = Math.max(BUSY_INTERVAL_MS_MIN, tookMs / BUSY_SHARE);
      const quietMs = Math.max(CHECK_INTERVAL_MS, tookMs / QUIET_SHARE);
      this.start(isBusy ? Math.min(busyMs, CHECK_INTERVAL_MS) : quietMs);
    }, delayMs).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#tell();
  }

  /** True where there were too many. */
  #check(): boolean {
    let excess = 0;
    if (this.#sockets.estimateConnections() > this.#max) {
      const open = this.#sockets.connections();
      excess = open.length - this.#max;
      if (excess > 0) this.#cutQuietest(open, excess);
    }
    if (performance.now() >= this.#lineAt + LINE_INTERVAL_MS) this.#tell();
    return excess > 0;
  }

  /** One line for all that was cut since the last one. */
  #tell(): void {
    if (this.#cut === 0) return;
    this.#log.warn(
      { cut: this.#cut, unanswered: this.#unanswered, connections_max: this.#max },
      "too many connections: cut those that were quiet longest",
    );
    this.#lineAt = performance.now();
    this.#cut = 0;
    this.#unanswered = 0;
  }

  #cutQuietest(open: OpenConnection[], count: number): void {
    open.sort((one, other) => other.quietMs - one.quietMs);
    for (const connection of open.slice(0, count)) {
      this.#sockets.shutDown(connection);
      this.#cut += 1;
      if (connection.isUnanswered) this.#unanswered += 1;
    }
  }
}

/** What is left when the process keeps its reserve. */
function connectionsPossible(descriptorsMax: number): number {
  const share = Math.floor(descriptorsMax * (1 - RESERVE_SHARE));
  return Math.max(1, Math.min(share, descriptorsMax - RESERVE_MIN));
}
