/**
 * Hands a port from one listener to another without losing a connection.
 *
 * A certificate can only be changed by starting a second listener on the port (`SO_REUSEPORT`) and
 * stopping the first. But until the first is stopped the kernel goes on giving it every other new
 * connection, and stopping it resets those that it has not accepted yet and those that are idle. So
 * the kernel is told to give new connections to the newest listener only (a BPF program of one
 * instruction, socket(7), `SO_ATTACH_REUSEPORT_CBPF`), and the old one stays until its connections
 * have gone by themselves.
 */
import { ptr } from "bun:ffi";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { type Libc, loadLibc } from "./libc.ts";

const SOL_SOCKET = 1;
const SO_ATTACH_REUSEPORT_CBPF = 51;
/** "Return the constant": the index of the listener, in the order of their binding. */
const BPF_RET_CONSTANT = 0x06;
const TCP_LISTEN = "0A";

/**
 * The listeners of one port, in the kernel's order: as they were bound, and where one is closed the
 * last takes its place.
 */
export class ListenerGroup<T> {
  readonly #port: number;
  readonly #listeners: T[];

  constructor(port: number, first: T) {
    this.#port = port;
    this.#listeners = [first];
  }

  get all(): readonly T[] {
    return this.#listeners;
  }

  add(listener: T): void {
    this.#listeners.push(listener);
  }

  /** To be called when it has been closed. */
  remove(listener: T): void {
    const index = this.#listeners.indexOf(listener);
    const last = this.#listeners.pop();
    if (last !== undefined && last !== listener) this.#listeners[index] = last;
  }

  /** Gives all new connections to one listener. False where the system does not let us. */
  steerTo(listener: T): boolean {
    if (this.#listeners.length === 1) return true;
    const libc = loadLibc();
    if (libc === null) return false;
    try {
      const fd = listeningDescriptor(this.#port);
      return fd !== null && attachConstant(libc, fd, this.#listeners.indexOf(listener));
    } catch {
      return false;
    }
  }
}

function attachConstant(libc: Libc, fd: number, index: number): boolean {
  // struct sock_filter { u16 code; u8 jt, jf; u32 k; }
  const instruction = new DataView(new ArrayBuffer(8));
  instruction.setUint16(0, BPF_RET_CONSTANT, true);
  instruction.setUint32(4, index, true);
  // struct sock_fprog { u16 len; struct sock_filter *filter; }
  const program = new DataView(new ArrayBuffer(16));
  program.setUint16(0, 1, true);
  program.setBigUint64(8, BigInt(ptr(instruction.buffer)), true);
  const { buffer, byteLength } = program;
  return libc.setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, ptr(buffer), byteLength) === 0;
}

/** A descriptor of this process that listens on the port; the program counts for all of them. */
function listeningDescriptor(port: number): number | null {
  const sockets = new Set(listeningInodes(port).map((inode) => `socket:[${inode}]`));
  for (const fd of readdirSync("/proc/self/fd")) {
    if (sockets.has(linkTarget(`/proc/self/fd/${fd}`))) return Number(fd);
  }
  return null;
}

function listeningInodes(port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
  const rows = tables.flatMap((table) => readFileSync(table, "utf8").split("\n").slice(1));
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter((columns) => columns[1]?.endsWith(suffix) && columns[3] === TCP_LISTEN)
    .flatMap((columns) => columns[9] ?? []);
}

/** The descriptor of the directory listing itself is gone by now. */
function linkTarget(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
