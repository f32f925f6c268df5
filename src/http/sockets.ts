/** Asks the kernel about this process's sockets on one port. */
import { ptr } from "bun:ffi";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { type Libc, loadLibc } from "../lib/libc.ts";

const DESCRIPTORS = "/proc/self/fd";
const DESCRIPTORS_MAX = readDescriptorsMax();
const AF_INET = 2;
const AF_INET6 = 10;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
const SHUT_RDWR = 2;
const TCP_ESTABLISHED = 1;
const TCP_LISTEN = 10;

export interface OpenConnection {
  readonly fd: number;
  /** Since anything was received or sent. */
  readonly idleMs: number;
}

export class PortSockets {
  readonly #libc: Libc;
  readonly #port: number;
  readonly #answer = new DataView(new ArrayBuffer(512));
  readonly #length = new Uint32Array(1);
  readonly #text = Buffer.alloc(64);

  private constructor(libc: Libc, port: number) {
    this.#libc = libc;
    this.#port = port;
  }

  /** Null without Linux, glibc and /proc. */
  static of(port: number): PortSockets | null {
    const libc = loadLibc();
    return libc === null || DESCRIPTORS_MAX === null ? null : new PortSockets(libc, port);
  }

  connections(): OpenConnection[] {
    return listDescriptors().flatMap((fd) =>
      this.#state(fd) === TCP_ESTABLISHED ? [{ fd, idleMs: this.#idleMs() }] : [],
    );
  }

  /** The peer's address and port, as Bun writes the address. Empty if the connection is over. */
  peerOf({ fd }: OpenConnection): string {
    const view = this.#answer;
    this.#length[0] = view.byteLength;
    if (this.#libc.getpeername(fd, ptr(view), ptr(this.#length)) !== 0) return "";
    const family = view.getUint16(0, true);
    // sin_addr is at 4, sin6_addr at 8 (ip(7), ipv6(7)).
    const address = ptr(view, family === AF_INET ? 4 : 8);
    if (!this.#libc.inet_ntop(family, address, ptr(this.#text), this.#text.length)) return "";
    const text = this.#text.toString("latin1", 0, this.#text.indexOf(0));
    return `${text} ${view.getUint16(2, false)}`;
  }

  /** The descriptors of the sockets that listen. */
  listeners(): number[] {
    return listDescriptors().filter((fd) => this.#state(fd) === TCP_LISTEN);
  }

  /** Limits what the kernel keeps of an answer that a client does not take. Later connections inherit it. */
  limitSendBuffers(bytes: number): void {
    const value = new Int32Array([bytes]);
    for (const fd of this.listeners()) {
      this.#libc.setsockopt(fd, SOL_SOCKET, SO_SNDBUF, ptr(value), value.byteLength);
    }
  }

  /**
   * Bun then closes it as if the client had gone. Call it in the same tick as `connections()`: later the
   * descriptor may be another connection.
   */
  shutDown({ fd }: OpenConnection): void {
    this.#libc.shutdown(fd, SHUT_RDWR);
  }

  /** Reads the socket's `tcp_info` into `#answer`. Null unless it is a socket of the port. */
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

  /** From `tcp_info` (linux/tcp.h): tcpi_last_data_sent and tcpi_last_data_recv. */
  #idleMs(): number {
    return Math.min(this.#answer.getUint32(44, true), this.#answer.getUint32(52, true));
  }
}

/** How many descriptors a process may open (`ulimit -n`). Null without /proc. */
export function readDescriptorsMax(pid: number | "self" = "self"): number | null {
  try {
    const limits = readFileSync(`/proc/${pid}/limits`, "utf8");
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1]);
  } catch {
    return null;
  }
}

/** Since Linux 6.2 the folder's size is their number (proc_pid_fd(5)). Infinity if no descriptor is left to read it. */
export function countDescriptors(): number {
  try {
    return statSync(DESCRIPTORS).size || readdirSync(DESCRIPTORS).length;
  } catch {
    return Infinity;
  }
}

/** Reading the folder takes a descriptor; if none is left, all of them are in use. */
function listDescriptors(): number[] {
  try {
    return readdirSync(DESCRIPTORS).map(Number);
  } catch {
    return Array.from({ length: DESCRIPTORS_MAX ?? 0 }, (_, fd) => fd);
  }
}
