/** What the kernel knows of the sockets that this process has on one port. */
import { ptr } from "bun:ffi";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { type Libc, loadLibc } from "../libc.ts";

const DESCRIPTORS = "/proc/self/fd";
const AF_INET = 2;
const AF_INET6 = 10;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
const SHUT_RDWR = 2;
const TCP_ESTABLISHED = 1;
const TCP_LISTEN = 10;

export interface OpenConnection {
  readonly fd: number;
  /** Since anything was received or sent. */
  readonly quietMs: number;
  /** Something was received after the last that was sent. */
  readonly isUnanswered: boolean;
}

export class PortSockets {
  /** How many descriptors the process may have. */
  readonly descriptorsMax: number;
  readonly #libc: Libc;
  readonly #port: number;
  readonly #answer = new DataView(new ArrayBuffer(512));
  readonly #length = new Uint32Array(1);

  private constructor(libc: Libc, port: number, descriptorsMax: number) {
    this.#libc = libc;
    this.#port = port;
    this.descriptorsMax = descriptorsMax;
  }

  /** Null where there is no way to know: it takes Linux with glibc and /proc. */
  static of(port: number): PortSockets | null {
    const libc = loadLibc();
    const descriptorsMax = readDescriptorsMax();
    return libc === null || descriptorsMax === null
      ? null
      : new PortSockets(libc, port, descriptorsMax);
  }

  /** Never fewer than there are connections, and much sooner known. */
  estimateConnections(): number {
    return countDescriptors();
  }

  connections(): OpenConnection[] {
    return this.#select((fd) => (this.#state(fd) === TCP_ESTABLISHED ? this.#describe(fd) : null));
  }

  /** The descriptors of those that listen. */
  listeners(): number[] {
    return this.#select((fd) => (this.#state(fd) === TCP_LISTEN ? fd : null));
  }

  /**
   * Bun then closes it as if the client had gone. Only in the tick of the look: as long as nothing
   * else runs, a descriptor is still the connection that it was.
   */
  shutDown({ fd }: OpenConnection): void {
    this.#libc.shutdown(fd, SHUT_RDWR);
  }

  #select<T>(look: (fd: number) => T | null): T[] {
    return listDescriptors(this.descriptorsMax).flatMap((fd) => look(fd) ?? []);
  }

  /** Leaves its `tcp_info` in the answer. Null for what is not a socket of the port. */
  #state(fd: number): number | null {
    const view = this.#answer;
    this.#length[0] = view.byteLength;
    if (this.#libc.getsockname(fd, ptr(view), ptr(this.#length)) !== 0) return null;
    const family = view.getUint16(0, true);
    if (family !== AF_INET && family !== AF_INET6) return null;
    if (view.getUint16(2, false) !== this.#port) return null;
    this.#length[0] = view.byteLength;
    const { getsockopt } = this.#libc;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, ptr(view), ptr(this.#length)) !== 0) return null;
    return view.getUint8(0);
  }

  #describe(fd: number): OpenConnection {
    const view = this.#answer;
    // struct tcp_info (linux/tcp.h): tcpi_state, _last_data_sent, _last_data_recv, _bytes_acked,
    // _bytes_received. Both times begin when the connection does.
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

/** Null where there is no /proc. */
export function readDescriptorsMax(): number | null {
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
