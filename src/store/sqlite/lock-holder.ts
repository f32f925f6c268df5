/** Asks the kernel who holds the write lock of a SQLite database. */
import { ptr } from "bun:ffi";
import { loadLibc } from "../../libc.ts";

const F_GETLK = 5;
const F_WRLCK = 1;
const F_UNLCK = 2;
/** The byte that SQLite locks for who is about to write (https://sqlite.org/src/file/src/os.h). */
const RESERVED_BYTE = 0x4000_0001n;

/** struct flock of 64-bit Linux: l_type, l_start, l_len and l_pid at these bytes. */
const FLOCK = { bytes: 32, type: 0, start: 8, len: 16, pid: 24 } as const;

/**
 * The pid of another process that holds it; null where none does, which this very process may. `unknown`
 * for one that cannot be seen from here, in another container for one, and where the system is not Linux
 * with glibc.
 */
export function findHolder(fd: number): number | "unknown" | null {
  const lock = new DataView(new ArrayBuffer(FLOCK.bytes));
  lock.setInt16(FLOCK.type, F_WRLCK, true);
  lock.setBigInt64(FLOCK.start, RESERVED_BYTE, true);
  lock.setBigInt64(FLOCK.len, 1n, true);
  // Puts the lock that stands in the way in the place of the one that is asked about.
  if (loadLibc()?.fcntl(fd, F_GETLK, ptr(lock)) !== 0) return "unknown";
  if (lock.getInt16(FLOCK.type, true) === F_UNLCK) return null;
  const pid = lock.getInt32(FLOCK.pid, true);
  return pid > 0 ? pid : "unknown";
}
