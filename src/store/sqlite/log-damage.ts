/**
 * Damage in the write-ahead log that SQLite would pass over in silence: its recovery ends at the first
 * frame that does not fit, as if a power cut had left it there, and whatever was committed after it is
 * gone. A power cut cannot leave whole transactions behind such a frame, because with
 * `synchronous=FULL` nothing is written after a commit before that commit is on disk. Format and
 * checksums: https://sqlite.org/fileformat2.html#walformat
 */
import { closeSync, openSync, readSync } from "node:fs";
import { systemCode } from "../../domain/errors.ts";

export interface LogDamage {
  /** The first frame that cannot be read, counted from 1; 0 for the log's header. */
  readonly frame: number;
}

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** What a disk writes as a whole. */
const SECTOR_BYTES = 512;
/** Ours, for a log whose header cannot be believed. */
const PAGE_BYTES = 4_096;
const FRAMES_READ_AT_ONCE = 256;
/** A log in use may start again or grow while it is read; then it is read again. */
const READINGS_MAX = 5;

/**
 * Null where the log is sound, ends as a power cut may leave it, or is not there. Damage in the last
 * transaction looks like a power cut, and is not found.
 */
export function findLogDamage(path: string): LogDamage | null {
  let before: Reading | null = null;
  for (let count = 0; count < READINGS_MAX; count += 1) {
    const reading = readLog(path);
    if (reading.damage === null) return null;
    // The same twice: nobody was writing at that place.
    if (before?.header === reading.header && before.damage?.frame === reading.damage.frame) {
      return reading.damage;
    }
    before = reading;
  }
  return null;
}

interface Reading {
  readonly header: string;
  readonly damage: LogDamage | null;
}

function readLog(path: string): Reading {
  const fd = openIfThere(path);
  if (fd === null) return { header: "", damage: null };
  try {
    const header = new Uint32Array(HEADER_BYTES / 4);
    const length = readSync(fd, header, 0, HEADER_BYTES, 0);
    const name = header.join();
    if (length < HEADER_BYTES) return { header: name, damage: null };
    const pageBytes = bigEndian(header, 2);
    const frameBytes = FRAME_HEADER_BYTES + (isPageSize(pageBytes) ? pageBytes : PAGE_BYTES);
    const reader = new FrameReader(header);
    readFrames(fd, frameBytes, (frame) => reader.next(frame));
    return { header: name, damage: reader.damage };
  } finally {
    closeSync(fd);
  }
}

/** Who closes the database last takes its log away, at any moment. */
function openIfThere(path: string): number | null {
  try {
    return openSync(path, "r");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return null;
    throw error;
  }
}

/** Until `next` says that it has seen enough. A frame that is cut off at the end does not count. */
function readFrames(fd: number, frameBytes: number, next: (frame: Uint32Array) => boolean): void {
  const buffer = new Uint8Array(frameBytes * FRAMES_READ_AT_ONCE);
  for (let at = HEADER_BYTES; ; at += buffer.length) {
    const frames = Math.floor(readSync(fd, buffer, 0, buffer.length, at) / frameBytes);
    for (let index = 0; index < frames; index += 1) {
      if (!next(new Uint32Array(buffer.buffer, index * frameBytes, frameBytes / 4))) return;
    }
    if (frames < FRAMES_READ_AT_ONCE) return;
  }
}

/** Follows the chain of checksums, and takes it up again behind a break. */
class FrameReader {
  /** As the frame before has them, whether or not they fit it. */
  #sum0: number;
  #sum1: number;
  #salt0: number;
  #salt1: number;
  #count = 0;
  #broken: number | null = null;
  #wasCommit = false;
  #damage: LogDamage | null = null;

  constructor(header: Uint32Array) {
    // Zeros are their own checksum.
    const isEmpty = header.every((word) => word === 0);
    this.#salt0 = header[4] ?? 0;
    this.#salt1 = header[5] ?? 0;
    this.#sum0 = bigEndian(header, 6);
    this.#sum1 = bigEndian(header, 7);
    const [sum0, sum1] = checksum(header, 0, 6, 0, 0);
    if (isEmpty || sum0 !== this.#sum0 || sum1 !== this.#sum1) this.#broken = 0;
  }

  get damage(): LogDamage | null {
    return this.#damage;
  }

  /** False once damage is proved: behind a break, a frame that was chained to a commit. */
  next(frame: Uint32Array): boolean {
    this.#count += 1;
    // Without the header nobody knows the salts, and its sector or page has some of the first frames in
    // it, too: the chain alone tells. (No frame is written before the header is on disk.)
    if (this.#broken === 0) {
      this.#salt0 = frame[2] ?? 0;
      this.#salt1 = frame[3] ?? 0;
    }
    const isSound = this.#follows(frame);
    if (isSound && this.#broken !== null && this.#wasCommit) {
      this.#damage = { frame: this.#broken };
      return false;
    }
    if (!isSound) this.#broken ??= this.#count;
    this.#wasCommit = frame[1] !== 0 && (isSound || this.#isBrokenCommit(frame));
    this.#sum0 = bigEndian(frame, 4);
    this.#sum1 = bigEndian(frame, 5);
    return true;
  }

  /**
   * The commit of a frame that is broken itself counts where it is the first one, unless a power cut may
   * have left the mark of an older log there: in another sector than the checksum that is gone on with.
   */
  #isBrokenCommit({ byteLength }: Uint32Array): boolean {
    const start = HEADER_BYTES + byteLength * (this.#count - 1);
    const [mark, end] = [start + 4, start + FRAME_HEADER_BYTES - 1];
    const isOneSector = Math.floor(mark / SECTOR_BYTES) === Math.floor(end / SECTOR_BYTES);
    return this.#broken === this.#count && isOneSector;
  }

  #follows(frame: Uint32Array): boolean {
    if (frame[2] !== this.#salt0 || frame[3] !== this.#salt1) return false;
    const [head0, head1] = checksum(frame, 0, 2, this.#sum0, this.#sum1);
    const [sum0, sum1] = checksum(frame, FRAME_HEADER_BYTES / 4, frame.length, head0, head1);
    return sum0 === bigEndian(frame, 4) && sum1 === bigEndian(frame, 5);
  }
}

/**
 * Over the words from `start` to before `end`, which are an even number, in this machine's order: what
 * SQLite writes on it. In a log of another kind of machine nothing fits, and so nothing is found.
 */
function checksum(
  words: Uint32Array,
  start: number,
  end: number,
  seed0: number,
  seed1: number,
): [number, number] {
  let sum0 = seed0;
  let sum1 = seed1;
  for (let at = start; at < end; at += 2) {
    sum0 = (sum0 + (words[at] ?? 0) + sum1) >>> 0;
    sum1 = (sum1 + (words[at + 1] ?? 0) + sum0) >>> 0;
  }
  return [sum0, sum1];
}

function bigEndian(words: Uint32Array, index: number): number {
  const word = words[index] ?? 0;
  return ((word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0;
}

function isPageSize(bytes: number): boolean {
  return bytes >= 512 && bytes <= 65_536 && (bytes & (bytes - 1)) === 0;
}
