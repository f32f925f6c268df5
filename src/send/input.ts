/** The signals to send: one JSON object per line, read as often as needed, in bounded memory. */
import {
  createReadStream,
  fstatSync,
  open,
  openSync,
  readSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { systemCode, UserError } from "../lib/errors.ts";
import { BODY_BYTES_MAX } from "../domain/signal/signal.ts";

export const STDIN = "-";

const STDIN_DESCRIPTOR = 0;
const CHUNK_BYTES = 256 * 1024;
/** The largest input that is copied to a file, because it is not one. */
const SPOOL_BYTES_MAX = 4 * 1024 ** 3;
const LINE_FEED = 0x0a;

export type Bytes = Uint8Array<ArrayBuffer>;

export interface Line {
  /** Counts from 1, empty lines included. */
  readonly number: number;
  /** Null for a line that is longer than any body may be. */
  readonly bytes: Bytes | null;
}

export class Input {
  readonly name: string;
  /** False for stdin, and for a pipe with a name. */
  readonly isFile: boolean;
  /** What is appended later is not read. */
  readonly bytes: number;
  readonly #descriptor: number;
  /** The hash of each chunk, from the first reading. */
  readonly #hashes: (number | bigint)[] = [];

  private constructor(name: string, isFile: boolean, descriptor: number) {
    this.name = name;
    this.isFile = isFile;
    this.bytes = fstatSync(descriptor).size;
    this.#descriptor = descriptor;
  }

  /** Copies pipes to an unnamed temporary file, because the input is read twice. Throws {@link UserError}. */
  static async open(path: string): Promise<Input> {
    const name = path === STDIN ? "stdin" : path;
    const descriptor = path === STDIN ? STDIN_DESCRIPTOR : await openFile(path);
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw new UserError(`${name} is a folder: name a file with signals.`);
    if (stats.isFile()) return new Input(name, path !== STDIN, descriptor);
    return new Input(name, false, await spool(descriptor, name));
  }

  isSame(path: string): boolean {
    const stats = statSync(path, { throwIfNoEntry: false });
    const { dev, ino } = fstatSync(this.#descriptor);
    return stats?.dev === dev && stats.ino === ino;
  }

  /** Yields the lines that are not blank. Throws {@link UserError} if they are not those of the first time. */
  async *lines(onChunk: (chunk: Bytes) => void = () => {}): AsyncGenerator<Line> {
    let number = 0;
    let begun: Bytes = new Uint8Array(0);
    for await (const chunk of this.#chunks()) {
      onChunk(chunk);
      const bytes = Buffer.concat([begun, chunk]);
      let start = 0;
      for (let end = bytes.indexOf(LINE_FEED); end !== -1; end = bytes.indexOf(LINE_FEED, start)) {
        number += 1;
        const line = lineOf(number, bytes.subarray(start, end));
        if (line !== null) yield line;
        start = end + 1;
      }
      // A byte more than a body may have is enough to tell that the line is too long.
      begun = bytes.subarray(start, start + BODY_BYTES_MAX + 1);
    }
    const last = lineOf(number + 1, begun);
    if (last !== null) yield last;
  }

  async *#chunks(): AsyncGenerator<Bytes> {
    let position = 0;
    for (let index = 0; position < this.bytes; index += 1) {
      const chunk = new Uint8Array(Math.min(CHUNK_BYTES, this.bytes - position));
      const length = readSync(this.#descriptor, chunk, 0, chunk.length, position);
      const hash = Bun.hash(chunk);
      this.#hashes[index] ??= hash;
      if (length < chunk.length || this.#hashes[index] !== hash) {
        throw new UserError(
          `${this.name} changed while it was read, and not only by lines appended: restore it, then run the same command again.`,
        );
      }
      position += length;
      yield chunk;
      // Lets a Ctrl-C and the progress bar have their turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** Null for a blank line. */
function lineOf(number: number, bytes: Bytes): Line | null {
  if (bytes.length > BODY_BYTES_MAX) return { number, bytes: null };
  return isBlank(bytes) ? null : { number, bytes };
}

/** JSON's white space. */
function isBlank(bytes: Bytes): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

async function openFile(path: string): Promise<number> {
  try {
    // Opening a named pipe waits for its writer.
    return await promisify(open)(path, "r");
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT") {
      throw new UserError(`There is no file ${path}: name a file with signals, or - for stdin.`);
    }
    throw new UserError(
      `${path} cannot be read (${code}): run signalbox as a user who may read it.`,
    );
  }
}

async function spool(source: number, name: string): Promise<number> {
  const file = join(tmpdir(), `signalbox-send-${crypto.randomUUID()}`);
  const descriptor = openSync(file, "wx+", 0o600);
  unlinkSync(file);
  let bytes = 0;
  for await (const chunk of createReadStream("", { fd: source }) as AsyncIterable<Bytes>) {
    bytes += chunk.length;
    if (bytes > SPOOL_BYTES_MAX) {
      throw new UserError(`${name} is larger than 4 GiB: write it to a file, and send that.`);
    }
    writeFileSync(descriptor, chunk);
  }
  return descriptor;
}
