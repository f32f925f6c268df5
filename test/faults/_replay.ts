/**
 * Power cuts without a disk of our own: strace records what a server writes to its database, and the
 * files are made anew from what a disk had to have at some moment. Finer than stopping the server: the
 * moment may lie inside an fsync, and of what was not synced any part may have reached the disk.
 */
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { DATABASE_NAME } from "../../src/store/sqlite/folder.ts";

/** For `underStrace`: all that can change a file, what makes it durable, and what leaves for the clients. */
export const recordingOptions: readonly string[] = [
  "-y",
  "-xx",
  "-s",
  "4096",
  "-e",
  "trace=pwrite64,pwritev,pwritev2,ftruncate,fallocate,fsync,fdatasync,unlink,unlinkat,rename,renameat,renameat2,sendto",
];

/** The lines of the recording at which a system call began, and ended: never, where the process did first. */
interface When {
  readonly from: number;
  readonly to: number;
}

type Change = When & { readonly file: string } & (
    | { readonly kind: "write"; readonly offset: number; readonly data: Buffer }
    | { readonly kind: "truncate"; readonly size: number }
    | { readonly kind: "unlink" }
  );

export interface Recording {
  /** Moments are lines: from the first answer to the last line. */
  readonly firstMoment: number;
  readonly lastMoment: number;
  /** The ids that were answered, or being answered, before a moment. */
  readonly answeredBefore: (moment: number) => Set<string>;
  /** The data folder as a power cut at this moment leaves it. `before`: as it was when the server started. */
  readonly cutAt: (moment: number, before: string, into: string, keep: Keep) => void;
}

/** Asked once a change that no fsync has decided over: what says of each sector of it whether it is kept. */
export type Keep = () => () => boolean;

export const keepAll: Keep = () => () => true;
export const keepNothing: Keep = () => () => false;
/** Any half of the changes, each of them whole: what was written last may be there, and what came before not. */
export const keepSomeChanges: Keep = () => {
  const isKept = Math.random() < 0.5;
  return () => isKept;
};
export const keepSomeSectors: Keep = () => () => Math.random() < 0.5;

const SECTOR_BYTES = 512;

export function readRecording(path: string): Recording {
  const changes: Change[] = [];
  const syncs: Sync[] = [];
  const answers: (When & { id: string })[] = [];
  const calls = readCalls(path);
  for (const call of calls) {
    const { name, text, result, from, to } = call;
    if (name === "sendto") {
      for (const [, id = ""] of unquote(text).matchAll(/"id":"(\w{26})"/g)) {
        answers.push({ id, from, to });
      }
      continue;
    }
    const file = fileOf(text);
    if (file === null) continue;
    if (name === "fsync" || name === "fdatasync") syncs.push({ file, from, to, ok: result === 0 });
    else if (result >= 0) changes.push({ ...readChange(call), file, from, to });
  }
  const decided = decide(changes, syncs);
  return {
    firstMoment: Math.min(...answers.map(fromOf)),
    lastMoment: calls.reduce((last, { from }) => Math.max(last, from), 0) + 1,
    answeredBefore: (moment) =>
      new Set(answers.filter(({ from }) => from < moment).map(({ id }) => id)),
    cutAt: (moment, before, into, keep) => {
      rmSync(into, { recursive: true, force: true });
      cpSync(before, into, { recursive: true });
      for (const file of new Set(changes.map((change) => change.file))) {
        const content = new Content(readOrEmpty(join(before, file)));
        for (const { change, decision } of decided) {
          if (change.file !== file || change.from >= moment) continue;
          const isDecided = decision !== undefined && decision.to < moment;
          content.apply(change, isDecided ? () => decision.ok : keep());
        }
        content.save(join(into, file));
      }
    },
  };
}

interface Sync extends When {
  readonly file: string;
  readonly ok: boolean;
}

interface DecidedChange {
  readonly change: Change;
  /** None: no fsync came after it. */
  readonly decision: Sync | undefined;
}

/**
 * Of the fsyncs that begin after a change, the first to end decides over it. One that succeeds makes it
 * durable. One that fails takes it away for good: the kernel may hold the pages for clean from then on,
 * and a later fsync succeeds without them (https://wiki.postgresql.org/wiki/Fsync_Errors).
 */
function decide(changes: readonly Change[], syncs: readonly Sync[]): DecidedChange[] {
  const ended = syncs.toSorted((a, b) => a.to - b.to);
  return changes.map((change) => ({
    change,
    decision: ended.find(({ file, from }) => file === change.file && from > change.to),
  }));
}

/**
 * One file of the data folder. That it is there at all is not asked for: on the journalling file
 * systems that people use, the fsync of a new file makes its name durable, too.
 */
class Content {
  #bytes: Buffer;
  #size: number;
  #isThere: boolean;

  constructor(bytes: Buffer | null) {
    this.#bytes = bytes ?? Buffer.alloc(0);
    this.#size = this.#bytes.length;
    this.#isThere = bytes !== null;
  }

  apply(change: Change, keep: () => boolean): void {
    switch (change.kind) {
      case "write":
        for (let at = 0; at < change.data.length;) {
          const end = at + SECTOR_BYTES - ((change.offset + at) % SECTOR_BYTES);
          if (keep()) this.#write(change.offset + at, change.data.subarray(at, end));
          at = end;
        }
        break;
      case "truncate":
        if (keep()) this.#resize(change.size);
        break;
      case "unlink":
        // At once: the worst that can be where something else still needs the file.
        this.#resize(0);
        this.#isThere = false;
        break;
    }
  }

  save(path: string): void {
    if (this.#isThere) writeFileSync(path, this.#bytes.subarray(0, this.#size), { mode: 0o600 });
    else rmSync(path, { force: true });
  }

  #write(offset: number, data: Buffer): void {
    if (offset + data.length > this.#size) this.#resize(offset + data.length);
    this.#bytes.set(data, offset);
  }

  #resize(size: number): void {
    this.#isThere = true;
    if (size > this.#bytes.length) {
      const larger = Buffer.alloc(size * 2);
      larger.set(this.#bytes.subarray(0, this.#size));
      this.#bytes = larger;
    } else if (size > this.#size) this.#bytes.fill(0, this.#size, size);
    this.#size = size;
  }
}

interface Call extends When {
  readonly name: string;
  /** All that strace says between the brackets. */
  readonly text: string;
  /** Negative where it failed; 0 where it never came back. */
  readonly result: number;
}

/** The calls of all threads, in the order in which they ended. */
function readCalls(path: string): Call[] {
  const unfinished = new Map<string, { name: string; text: string; from: number }>();
  const calls: Call[] = [];
  for (const [line, content] of readFileSync(path, "latin1").split("\n").entries()) {
    const [, thread = "", rest = ""] = /^(\d+) +(.*)$/.exec(content) ?? [];
    const resumed = rest.startsWith("<... ") ? unfinished.get(thread) : undefined;
    const started = resumed ?? startOf(rest, line);
    if (started === null) continue;
    unfinished.set(thread, started);
    if (rest.endsWith("<unfinished ...>")) continue;
    // The process was killed in it.
    if (rest.endsWith("= ?")) continue;
    unfinished.delete(thread);
    const result = Number(/\) += (-?\d+)[^=]*$/.exec(rest)?.[1]);
    if (Number.isNaN(result)) throw new Error(`not understood: ${rest}`);
    calls.push({ ...started, to: line, result });
  }
  for (const started of unfinished.values()) {
    calls.push({ ...started, to: Number.POSITIVE_INFINITY, result: 0 });
  }
  return calls;
}

function startOf(rest: string, from: number): { name: string; text: string; from: number } | null {
  const bracket = rest.indexOf("(");
  if (bracket < 0 || !/^\w+$/.test(rest.slice(0, bracket))) return null;
  const text = rest.slice(bracket + 1).replace(/( <unfinished \.\.\.>|\) += [^=]*)$/, "");
  return { name: rest.slice(0, bracket), text, from };
}

/** The database's file that a call is about: named by its descriptor, or by its path. */
function fileOf(text: string): string | null {
  const quoted = /^\w+<((?:\\x..)*)>/.exec(text)?.[1] ?? /"((?:\\x..)*)"/.exec(text)?.[1] ?? "";
  const name = basename(unhex(quoted).toString());
  return name.startsWith(DATABASE_NAME) && !name.endsWith("-shm") ? name : null;
}

type ChangeOnly =
  | { kind: "write"; offset: number; data: Buffer }
  | { kind: "truncate"; size: number }
  | { kind: "unlink" };

/** Throws for what it cannot replay: a recording that is not whole proves nothing. */
function readChange({ name, text, result, to }: Call): ChangeOnly {
  switch (name) {
    case "pwrite64": {
      const data = unhex(text.slice(text.indexOf('"') + 1, text.lastIndexOf('"')));
      const [, count, offset] = /", (\d+), (\d+)$/.exec(text) ?? [];
      if (data.length !== Number(count) || (Number.isFinite(to) && result !== data.length)) {
        throw new Error(`${data.length} of ${count} bytes recorded, ${result} written`);
      }
      return { kind: "write", offset: Number(offset), data };
    }
    case "ftruncate":
      return { kind: "truncate", size: Number(/, (\d+)$/.exec(text)?.[1]) };
    case "unlink":
      return { kind: "unlink" };
    default:
      throw new Error(`${name} is not replayed`);
  }
}

function unquote(text: string): string {
  return unhex(text.slice(text.indexOf('"') + 1, text.lastIndexOf('"'))).toString();
}

function unhex(text: string): Buffer {
  return Buffer.from(text.replaceAll("\\x", ""), "hex");
}

function readOrEmpty(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}

function fromOf({ from }: When): number {
  return from;
}
