/** Damage as disks do it: a flipped bit, a sector of zeros, a page of noise. The same again for the same seed. */
import type { Random } from "../../kit/random.ts";

const SECTOR_BYTES = 512;
const PAGE_BYTES = 4_096;
/** https://sqlite.org/fileformat2.html#walformat */
const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES;

const below = (random: Random, count: number): number => Math.floor(random() * count);

export interface Damage {
  readonly kind: "bit" | "sector" | "page";
  readonly place: string;
  /** The first and the last changed byte. */
  readonly from: number;
  readonly to: number;
}

/** Picks a byte's offset in a file. */
export interface Place {
  readonly name: string;
  readonly pick: (random: Random) => number;
}

/** Damages the bytes. Returns null if nothing has changed, such as zeros replaced by zeros. */
export function damage(
  bytes: Buffer,
  { name, pick }: Place,
  kind: Damage["kind"],
  random: Random,
): Damage | null {
  const at = Math.min(pick(random), bytes.length - 1);
  const size = { bit: 1, sector: SECTOR_BYTES, page: PAGE_BYTES }[kind];
  const start = at - (at % size);
  const touched = bytes.subarray(start, start + size);
  const before = Buffer.from(touched);
  const bit = 1 << below(random, 8);
  for (const [index, byte] of before.entries()) {
    touched[index] = { bit: byte ^ bit, sector: 0, page: below(random, 256) }[kind];
  }
  const isChanged = (byte: number, index: number): boolean => byte !== before[index];
  const first = touched.findIndex(isChanged);
  if (first < 0) return null;
  return { kind, place: name, from: start + first, to: start + touched.findLastIndex(isChanged) };
}

/** Mostly where the file has its structure: a random byte is usually part of a value. */
export function placesInDatabase(bytes: Buffer, pagesOfKeys: readonly number[]): Place[] {
  const pages = bytes.length / PAGE_BYTES;
  return [
    { name: "anywhere", pick: (random) => below(random, bytes.length) },
    {
      name: "page headers",
      pick: (random) => below(random, pages) * PAGE_BYTES + below(random, 64),
    },
    { name: "file header", pick: (random) => below(random, 100) },
    // Cells are at the end of their page.
    {
      name: "keys",
      pick: (random) =>
        (pagesOfKeys[below(random, pagesOfKeys.length)] ?? 0) * PAGE_BYTES +
        (random() < 0.2 ? below(random, 16) : PAGE_BYTES - 1 - below(random, 700)),
    },
  ];
}

export interface LogShape {
  readonly frames: number;
  /** The last frame of each transaction, in order. */
  readonly commits: readonly number[];
  /** The last frame before the last transaction. */
  readonly committedBefore: number;
}

export function shapeOfLog(log: Buffer): LogShape {
  const frames = Math.floor((log.length - LOG_HEADER_BYTES) / FRAME_BYTES);
  const commits: number[] = [];
  for (let frame = 1; frame <= frames; frame += 1) {
    const at = startOfFrame(frame);
    const isOfThisLog = log.subarray(at + 8, at + 16).equals(log.subarray(16, 24));
    if (isOfThisLog && log.readUInt32BE(at + 4) !== 0) commits.push(frame);
  }
  return { frames, commits, committedBefore: commits.at(-2) ?? 0 };
}

/** Its offset; frames are counted from 1. */
export function startOfFrame(frame: number): number {
  return LOG_HEADER_BYTES + (frame - 1) * FRAME_BYTES;
}

/** The frame of a byte; 0 for the log's header. */
export function frameAt(offset: number): number {
  return offset < LOG_HEADER_BYTES ? 0 : Math.floor((offset - LOG_HEADER_BYTES) / FRAME_BYTES) + 1;
}

export function placesInLog(log: Buffer): Place[] {
  const { frames, committedBefore } = shapeOfLog(log);
  const last = startOfFrame(committedBefore + 1);
  return [
    { name: "pages", pick: (random) => below(random, log.length) },
    {
      name: "frame headers",
      pick: (random) => startOfFrame(1 + below(random, frames)) + below(random, FRAME_HEADER_BYTES),
    },
    { name: "log header", pick: (random) => below(random, LOG_HEADER_BYTES) },
    { name: "last transaction", pick: (random) => last + below(random, log.length - last) },
  ];
}
