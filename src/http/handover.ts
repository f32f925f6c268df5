/**
 * Tells the kernel which listener gets new connections, with socket filters (socket(7)).
 *
 * Closing a listener resets the connections that it has not accepted yet. So before it closes, new
 * connections go to its successor or, if there is none, are delayed (docs/reliability.md has the
 * measurements). Without Linux and glibc this does nothing, and a client may have to retry.
 */
import { ptr } from "bun:ffi";
import { loadLibc } from "../lib/libc.ts";

const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_ATTACH_REUSEPORT_CBPF = 51;

/** struct sock_filter { u16 code; u8 jt, jf; u32 k; } */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, k: number];
const LOAD_BYTE = 0x30;
const AND = 0x54;
const JUMP_IF_EQUAL = 0x15;
const RETURN = 0x06;

const TCP_FLAGS_OFFSET = 13;
const SYN = 0x02;
const ACK = 0x10;

/** Drops the packet that opens a connection; a handshake in progress can finish. */
const dropNewConnections: readonly Instruction[] = [
  [LOAD_BYTE, 0, 0, TCP_FLAGS_OFFSET],
  [AND, 0, 0, SYN | ACK],
  [JUMP_IF_EQUAL, 0, 1, SYN],
  [RETURN, 0, 0, 0],
  [RETURN, 0, 0, 0xffff_ffff],
];

/**
 * Gives new connections to the listener with this index, in the order of binding. One program counts for
 * all listeners of the port; the kernel ignores an index that is too high.
 */
export function giveTo(index: number, [listener]: readonly number[]): void {
  if (listener === undefined) return;
  attach(listener, SO_ATTACH_REUSEPORT_CBPF, [[RETURN, 0, 0, index]]);
}

/** The client's kernel repeats the dropped packet after a second; the port is closed or another process's by then. */
export function holdOffNew(listeners: readonly number[]): void {
  for (const fd of listeners) attach(fd, SO_ATTACH_FILTER, dropNewConnections);
}

function attach(fd: number, option: number, instructions: readonly Instruction[]): void {
  const code = new DataView(new ArrayBuffer(8 * instructions.length));
  for (const [index, [operation, ifTrue, ifFalse, k]] of instructions.entries()) {
    code.setUint16(8 * index, operation, true);
    code.setUint8(8 * index + 2, ifTrue);
    code.setUint8(8 * index + 3, ifFalse);
    code.setUint32(8 * index + 4, k, true);
  }
  // struct sock_fprog { u16 len; struct sock_filter *filter; }
  const program = new DataView(new ArrayBuffer(16));
  program.setUint16(0, instructions.length, true);
  program.setBigUint64(8, BigInt(ptr(code.buffer)), true);
  loadLibc()?.setsockopt(fd, SOL_SOCKET, option, ptr(program.buffer), program.byteLength);
}
