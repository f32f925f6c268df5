/**
 * Hands a port from one listener to another, or gives it up, without losing a connection.
 *
 * A certificate can only be changed by starting a second listener on the port (`SO_REUSEPORT`) and
 * stopping the first. But until the first is stopped the kernel goes on giving it every other new
 * connection, and stopping it resets those that it has not accepted yet and those that are idle. So
 * the kernel is told to give new connections to the newest listener only (a BPF program of one
 * instruction, socket(7), `SO_ATTACH_REUSEPORT_CBPF`), and the old one stays until its connections
 * have gone by themselves. Where there is no other, no new connection may come: another such program
 * drops the first packet of each (`SO_ATTACH_FILTER`).
 */
import { ptr } from "bun:ffi";
import { loadLibc } from "../libc.ts";
import type { PortSockets } from "./sockets.ts";

const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_ATTACH_REUSEPORT_CBPF = 51;

/** struct sock_filter { u16 code; u8 jt, jf; u32 k; } */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, k: number];
const INSTRUCTION_BYTES = 8;
const LOAD_BYTE = 0x30;
const AND = 0x54;
const JUMP_IF_EQUAL = 0x15;
const RETURN = 0x06;

const TCP_FLAGS_OFFSET = 13;
const SYN = 0x02;
const ACK = 0x10;

/** Drops what opens a connection, and nothing else: a handshake that has begun comes to its end. */
const dropNewConnections: readonly Instruction[] = [
  [LOAD_BYTE, 0, 0, TCP_FLAGS_OFFSET],
  [AND, 0, 0, SYN | ACK],
  [JUMP_IF_EQUAL, 0, 1, SYN],
  [RETURN, 0, 0, 0],
  [RETURN, 0, 0, 0xffff_ffff],
];

/** The index of a listener, in the order of their binding. */
const giveToListener = (index: number): readonly Instruction[] => [[RETURN, 0, 0, index]];

/**
 * The listeners of one port, in the kernel's order: as they were bound, and where one is closed the
 * last takes its place.
 */
export class ListenerGroup<T> {
  readonly #sockets: PortSockets | null;
  readonly #listeners: T[];

  /** Without sockets nothing can be steered. */
  constructor(sockets: PortSockets | null, first: T) {
    this.#sockets = sockets;
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
    // The program of one counts for all.
    const [fd] = this.#sockets?.listeners() ?? [];
    const program = giveToListener(this.#listeners.indexOf(listener));
    return fd !== undefined && attach(fd, SO_ATTACH_REUSEPORT_CBPF, program);
  }

  /**
   * From now on the kernel opens no new connection: a client's first packet is dropped, and when it
   * comes again, a second later, the port is closed or another process's. Those that the kernel has
   * opened are still to be accepted. Where the system does not let us, all goes on as before.
   */
  holdOffNew(): void {
    for (const fd of this.#sockets?.listeners() ?? []) {
      attach(fd, SO_ATTACH_FILTER, dropNewConnections);
    }
  }
}

function attach(fd: number, option: number, instructions: readonly Instruction[]): boolean {
  const code = new DataView(new ArrayBuffer(INSTRUCTION_BYTES * instructions.length));
  for (const [index, [operation, ifTrue, ifFalse, k]] of instructions.entries()) {
    const start = INSTRUCTION_BYTES * index;
    code.setUint16(start, operation, true);
    code.setUint8(start + 2, ifTrue);
    code.setUint8(start + 3, ifFalse);
    code.setUint32(start + 4, k, true);
  }
  // struct sock_fprog { u16 len; struct sock_filter *filter; }
  const program = new DataView(new ArrayBuffer(16));
  program.setUint16(0, instructions.length, true);
  program.setBigUint64(8, BigInt(ptr(code.buffer)), true);
  const { buffer, byteLength } = program;
  return loadLibc()?.setsockopt(fd, SOL_SOCKET, option, ptr(buffer), byteLength) === 0;
}
