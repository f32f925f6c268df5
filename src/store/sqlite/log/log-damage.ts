/**
 * Finds damage in the write-ahead log that SQLite would accept silently: its recovery ends at the first
 * frame with a wrong checksum, as if a power cut had left it there, and drops every transaction after it.
 * A power cut cannot leave later transactions behind such a frame, because `synchronous=FULL` puts each
 * commit on disk before anything else is written. https://sqlite.org/fileformat2.html#walformat
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { systemCode, UserError } from "../../../lib/errors.ts";
import { shellQuoted } from "../../../lib/text/shell.ts";

const HEADER_BYTES = 32;
const FRAME_HEADER_WORDS = 6;
const FRAME_BYTES = FRAME_HEADER_WORDS * 4 + 4_096;
const FRAMES_READ_AT_ONCE = 256;
const READINGS_MAX = 5;

/** Call it before SQLite opens the database: what SQLite recovers first is what everybody gets. */
export function refuseDamagedLog(path: string): void {
  refuseLoneLog(path);
  const frame = findDamagedFrame(`${path}-wal`);
  if (frame === null) return;
  const place = frame === 0 ? "its header" : `frame ${frame}`;
  throw new UserError(
    `${path}-wal is damaged (${place}), and acknowledged signals come after that place: keep a copy of the folder, then restore a backup with: signalbox restore FILE --data ${shellQuoted(dirname(path))} --force. (Without a backup, this keeps what can be read, if anything can: sqlite3 ${shellQuoted(path)} 'PRAGMA wal_checkpoint(TRUNCATE)'.)`,
  );
}

/** SQLite deletes the log of an empty database when it opens it, even read-only. */
export function refuseLoneLog(path: string): void {
  // The database again after the log: another process may have created both meanwhile.
  if (!isEmpty(path) || isEmpty(`${path}-wal`) || !isEmpty(path)) return;
  throw new UserError(
    `${path} is missing or empty, but its log ${path}-wal is there: put the database back beside it, or move the log away to start with an empty database.`,
  );
}

/** Whether the file is missing or empty. */
export function isEmpty(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/**
 * Returns the number of the first damaged frame, from 1, or 0 for the log's header; null if the log is
 * missing, sound, or ends as a power cut may leave it. Damage near its end looks like a power cut.
 */
export function findDamagedFrame(path: string): number | null {
  let before: Reading | null = null;
  for (let count = 0; count < READINGS_MAX; count += 1) {
    const reading = readLog(path);
    if (reading.damaged === null) return null;
    // Two equal readings: no server was writing meanwhile.
    if (before?.header === reading.header && before.damaged === reading.damaged) {
      return reading.damaged;
    }
    before = reading;
  }
  return null;
}

/**
 * Whether the file lacks its header or some of its first `frames` frames. Closing it releases no lock of SQLite, which
 * locks the database and the log's index.
 */
export function isCutOff(path: string, frames: number): boolean {
  const file = openIfExists(path);
  if (file === null) return false;
  try {
    const header = new Uint32Array(1);
    readSync(file, header, 0, 4, 0);
    // Frames that were written after the cut leave a hole before them.
    return header[0] === 0 || fstatSync(file).size < HEADER_BYTES + frames * FRAME_BYTES;
  } finally {
    closeSync(file);
  }
}

interface Reading {
  readonly header: string;
  readonly damaged: number | null;
}

function readLog(path: string): Reading {
  const file = openIfExists(path);
  if (file === null) return { header: "", damaged: null };
  try {
    const header = new Uint32Array(HEADER_BYTES / 4);
    const isWhole = readSync(file, header, 0, HEADER_BYTES, 0) === HEADER_BYTES;
    return {
      header: header.join(),
      damaged: isWhole ? firstDamaged(header, framesOf(file)) : null,
    };
  } finally {
    closeSync(file);
  }
}

/** The last process to close the database removes its log, at any moment. */
function openIfExists(path: string): number | null {
  try {
    return openSync(path, "r");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return null;
    throw error;
  }
}

/** Yields whole frames only. */
function* framesOf(file: number): Generator<Uint32Array> {
  const buffer = new Uint8Array(FRAME_BYTES * FRAMES_READ_AT_ONCE);
  for (let at = HEADER_BYTES; ; at += buffer.length) {
    const frames = Math.floor(readSync(file, buffer, 0, buffer.length, at) / FRAME_BYTES);
    for (let index = 0; index < frames; index += 1) {
      yield new Uint32Array(buffer.buffer, index * FRAME_BYTES, FRAME_BYTES / 4);
    }
    if (frames < FRAMES_READ_AT_ONCE) return;
  }
}

type Sums = readonly [number, number];

/** A sound commit and a further sound frame, both after an unsound frame, prove damage. */
function firstDamaged(header: Uint32Array, frames: Iterable<Uint32Array>): number | null {
  // Each checksum continues from the one that is stored in the frame before, right or wrong.
  let sums = storedSums(header, 6);
  // Zeros are their own checksum.
  const isHeader = header[0] !== 0 && isSame(checksum(header.subarray(0, 6), [0, 0]), sums);
  let broken = isHeader ? null : 0;
  let wasCommit = false;
  let number = 0;
  for (const frame of frames) {
    number += 1;
    const sound = isSound(frame, sums) && (broken === 0 || isOfLog(frame, header));
    if (sound && wasCommit && broken !== null) return broken;
    if (!sound) broken ??= number;
    wasCommit = sound && frame[1] !== 0;
    sums = storedSums(frame, 4);
  }
  return null;
}

/** False for the frames of an older log, which the present one has not overwritten yet. */
function isOfLog(frame: Uint32Array, header: Uint32Array): boolean {
  return frame[2] === header[4] && frame[3] === header[5];
}

function isSound(frame: Uint32Array, before: Sums): boolean {
  const head = checksum(frame.subarray(0, 2), before);
  return isSame(checksum(frame.subarray(FRAME_HEADER_WORDS), head), storedSums(frame, 4));
}

function isSame(one: Sums, other: Sums): boolean {
  return one[0] === other[0] && one[1] === other[1];
}

/** Takes an even number of words in this machine's byte order, as SQLite writes them. */
function checksum(words: Uint32Array, [seed0, seed1]: Sums): Sums {
  let [sum0, sum1] = [seed0, seed1];
  for (let at = 0; at < words.length; at += 2) {
    sum0 = (sum0 + (words[at] ?? 0) + sum1) >>> 0;
    sum1 = (sum1 + (words[at + 1] ?? 0) + sum0) >>> 0;
  }
  return [sum0, sum1];
}

function storedSums(words: Uint32Array, at: number): Sums {
  const view = new DataView(words.buffer, words.byteOffset + at * 4, 8);
  return [view.getUint32(0), view.getUint32(4)];
}
