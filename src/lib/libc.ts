/** System calls that Bun has no API for. */
import { dlopen, FFIType } from "bun:ffi";

const { i32, ptr, u32, u64 } = FFIType;

const calls = {
  getpeername: { args: [i32, ptr, ptr], returns: i32 },
  getsockname: { args: [i32, ptr, ptr], returns: i32 },
  getsockopt: { args: [i32, i32, i32, ptr, ptr], returns: i32 },
  inet_ntop: { args: [i32, ptr, ptr, u32], returns: u64 },
  poll: { args: [ptr, u64, i32], returns: i32 },
  setsockopt: { args: [i32, i32, i32, ptr, u32], returns: i32 },
  shutdown: { args: [i32, i32], returns: i32 },
} as const;

export type Libc = ReturnType<typeof dlopen<typeof calls>>["symbols"];

let loaded: Libc | null | undefined;

/** Opened once and never closed. Null unless the system is Linux with glibc. */
export function loadLibc(): Libc | null {
  if (loaded !== undefined) return loaded;
  try {
    loaded = process.platform === "linux" ? dlopen("libc.so.6", calls).symbols : null;
  } catch {
    loaded = null;
  }
  return loaded;
}
