/**
 * Holds the number of open connections under a limit; `Bun.serve` has none.
 *
 * A few times a second this process's own descriptors are counted. When there are too many, the
 * kernel is asked how long each connection has been quiet, and those that were quiet longest are shut
 * down; Bun then closes them as if the client had gone. So a client that sends signals keeps its
 * connection, one that only holds it loses it, and no request is the slower for it.
 */
import { ptr } from "bun:ffi";
import { readdirSync, readFileSync, statSync } from "node:fs";
import type { Logger } from "pino";
import { type Libc, loadLibc } from "./libc.ts";

/**
 * Over TLS each costs 4 KiB where it is idle, up to 36 KiB where a stranger does his worst, and up to
 * 110 KiB where a desk does: in all less than half of what a VM with 1 GiB has.
 */
export const CONNECTIONS_MAX_DEFAULT = 4_096;

const CHECK_INTERVAL_MS = 250;
/** While connections are being cut: as often as takes a tenth of the time, at most this often. */
const BUSY_INTERVAL_MS_MIN = 10;
const BUSY_SHARE = 1 / 10;
const LINE_INTERVAL_MS = 5_000;
/** Of the descriptors that the process may open: for what arrives between two looks, and for files. */
const RESERVE_SHARE = 1 / 4;
const RESERVE_MIN = 64;

const DESCRIPTORS = "/proc/self/fd";
const AF_INET = 2;
const AF_INET6 = 10;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
const SHUT_RDWR = 2;
const TCP_ESTABLISHED = 1;

export interface ConnectionLimit {
  /** Of the public interface. */
  readonly port: number;
  /** 0 for as many as there are descriptors for. */
  readonly connectionsMax: number;
  readonly log: Logger;
}

interface Connection {
  readonly fd: number;
  /** Since anything was received or sent. */
  readonly quietMs: number;
  /** Something was received after the last that was sent. */
  readonly isUnanswered: boolean;
}

/** Starts to look; the returned function ends it. */
export function limitConnections({ port, connectionsMax, log }: ConnectionLimit): () => void {
  const libc = loadLibc();
  const descriptorsMax = readDescriptorsMax();
  if (libc === null || descriptorsMax === null) {
    log.warn("there is no limit on connections: it takes Linux with glibc and /proc");
    return () => {};
  }
  const possible = connectionsPossible(descriptorsMax);
  if (connectionsMax > possible) {
    log.warn(
      { connections_max: possible, asked: connectionsMax, descriptors_max: descriptorsMax },
      "fewer connections than --max-connections: the process may not open enough files (ulimit -n)",
    );
  }
  const max = connectionsMax === 0 ? possible : Math.min(connectionsMax, possible);
  const guard = new ConnectionGuard(libc, { port, max, descriptorsMax, log });
  guard.start();
  return () => guard.stop();
}

class ConnectionGuard {
  readonly #libc: Libc;
  readonly #options: { port: number; max: number; descriptorsMax: number; log: Logger };
  readonly #answer = new DataView(new ArrayBuffer(512));
  readonly #length = new Uint32Array(1);
  /** Not yet in the log. */
  #cut = 0;
  #unanswered = 0;
  #lineAt = -Infinity;
  #timer: Timer | undefined;

  constructor(
    libc: Libc,
    options: { port: number; max: number; descriptorsMax: number; log: Logger },
  ) {
    this.#libc = libc;
    this.#options = options;
  }

  start(delayMs = CHECK_INTERVAL_MS): void {
    this.#timer = setTimeout(() => {
      const startedAt = performance.now();
      const isBusy = this.#check();
      const busyMs = Math.max(BUSY_INTERVAL_MS_MIN, (performance.now() - startedAt) / BUSY_SHARE);
      this.start(isBusy ? Math.min(busyMs, CHECK_INTERVAL_MS) : CHECK_INTERVAL_MS);
    }, delayMs).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#tell();
  }

  /** True where there were too many. */
  #check(): boolean {
    const { max, descriptorsMax } = this.#options;
    // Never fewer than there are connections, and much sooner known.
    let excess = 0;
    if (countDescriptors() > max) {
      const open = listDescriptors(descriptorsMax).flatMap((fd) => this.#look(fd) ?? []);
      excess = open.length - max;
      if (excess > 0) this.#cutQuietest(open, excess);
    }
    if (performance.now() >= this.#lineAt + LINE_INTERVAL_MS) this.#tell();
    return excess > 0;
  }

  /** One line for all that was cut since the last one. */
  #tell(): void {
    if (this.#cut === 0) return;
    this.#options.log.warn(
      { cut: this.#cut, unanswered: this.#unanswered, connections_max: this.#options.max },
      "too many connections: cut those that were quiet longest",
    );
    this.#lineAt = performance.now();
    this.#cut = 0;
    this.#unanswered = 0;
  }

  /** Nothing runs between the look and the cut, so a descriptor is still the connection that it was. */
  #cutQuietest(open: Connection[], count: number): void {
    open.sort((one, other) => other.quietMs - one.quietMs);
    for (const { fd, isUnanswered } of open.slice(0, count)) {
      this.#libc.shutdown(fd, SHUT_RDWR);
      this.#cut += 1;
      if (isUnanswered) this.#unanswered += 1;
    }
  }

  /** Null for what is not an open connection of the public interface. */
  #look(fd: number): Connection | null {
    const view = this.#answer;
    this.#length[0] = view.byteLength;
    if (this.#libc.getsockname(fd, ptr(view), ptr(this.#length)) !== 0) return null;
    const family = view.getUint16(0, true);
    if (family !== AF_INET && family !== AF_INET6) return null;
    if (view.getUint16(2, false) !== this.#options.port) return null;
    this.#length[0] = view.byteLength;
    const { getsockopt } = this.#libc;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, ptr(view), ptr(this.#length)) !== 0) return null;
    // struct tcp_info (linux/tcp.h): tcpi_state, _last_data_sent, _last_data_recv, _bytes_acked,
    // _bytes_received. Both times begin when the connection does.
    if (view.getUint8(0) !== TCP_ESTABLISHED) return null;
    const sentMsAgo = view.getUint32(44, true);
    const receivedMsAgo = view.getUint32(52, true);
    const hasSent = view.getBigUint64(120, true) > 0n;
    const hasReceived = view.getBigUint64(128, true) > 0n;
    return {
      fd,
      quietMs: Math.min(sentMsAgo, receivedMsAgo),
      isUnanswered: hasReceived && (!hasSent || receivedMsAgo < sentMsAgo),
    };
  }
}

/** What is left when the process keeps its reserve. */
function connectionsPossible(descriptorsMax: number): number {
  const reserve = Math.max(RESERVE_MIN, Math.ceil(descriptorsMax * RESERVE_SHARE));
  return Math.max(1, descriptorsMax - reserve);
}

/** Null where there is no /proc. */
function readDescriptorsMax(): number | null {
  try {
    const [, soft] =
      /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}

/** Since Linux 6.2 the folder's size says it (proc_pid_fd(5)); before, they are counted. */
function countDescriptors(): number {
  try {
    return statSync(DESCRIPTORS).size || readdirSync(DESCRIPTORS).length;
  } catch {
    return Infinity;
  }
}

/** Reading the folder takes a descriptor itself: when there is none left, every number is taken. */
function listDescriptors(descriptorsMax: number): number[] {
  try {
    return readdirSync(DESCRIPTORS).map(Number);
  } catch {
    return Array.from({ length: descriptorsMax }, (_, fd) => fd);
  }
}
