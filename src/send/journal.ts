/**
 * The ids of signals that have none. The journal, written and synced before the first attempt, records
 * the first id and which input it belongs to: line N gets the first id plus N. So one small file is enough
 * for any input, and another run repeats every id, also after lines were appended to the input.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { systemCode, UserError } from "../lib/errors.ts";
import { shellQuoted } from "../lib/text/shell.ts";
import { partialPath, syncPath } from "../lib/files.ts";

/** Identifies an input by its content. */
export interface Fingerprint {
  readonly sha256: string;
  readonly bytes: number;
}

export interface Journal extends Fingerprint {
  readonly signalbox_journal: 1;
  readonly created_at: string;
  readonly first_id: string;
}

/**
 * Writes a new journal, or replaces `recorded` after lines were appended to the input. Returns the first id.
 * Throws {@link UserError} if it cannot be written.
 */
export function writeJournal(file: string, recorded: Journal | null, input: Fingerprint): string {
  const { created_at, first_id } = recorded ?? {
    created_at: new Date().toISOString(),
    first_id: newFirstId(),
  };
  const { sha256, bytes } = input;
  const journal: Journal = { signalbox_journal: 1, created_at, sha256, bytes, first_id };
  // A new one under its own name: of two runs at once only one can create it.
  const written = recorded === null ? file : partialPath(file);
  try {
    if (recorded?.bytes !== bytes) {
      writeFileSync(written, `${JSON.stringify(journal)}\n`, { mode: 0o600, flag: "wx" });
      if (written !== file) {
        syncPath(written);
        renameSync(written, file);
      }
    }
    // The run that wrote a recorded one may have been killed before it was on disk.
    syncPath(file);
    syncPath(dirname(file));
  } catch (error) {
    throw new UserError(
      `The journal ${file} cannot be written (${systemCode(error)}), and nothing was sent: name another place with --journal FILE.`,
    );
  }
  return first_id;
}

/** Returns null if there is no such file. Throws {@link UserError} if it is not a journal. */
export function readJournal(file: string): Journal | null {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT") return null;
    throw new UserError(
      `The journal ${file} cannot be read (${code}): run signalbox as the user who created it.`,
    );
  }
  const journal = parse(text);
  if (journal !== null) return journal;
  throw new UserError(
    `${file} is not a complete journal: name another file with --journal FILE or, if no other send is running and you do not need the file, delete it: rm ${shellQuoted(file)}`,
  );
}

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function parse(text: string): Journal | null {
  try {
    const record = JSON.parse(text) as Journal | null;
    const isJournal = record?.signalbox_journal === 1 && UUID_V7.test(record.first_id);
    return isJournal ? record : null;
  } catch {
    return null;
  }
}

/** The bits of a UUID v7 behind its variant. */
const LOW_BITS = 62n;

/** Leaves room to count (RFC 9562, 6.2, method 2): the first random bit behind the variant is 0. */
export function newFirstId(): string {
  return format(parseId(Bun.randomUUIDv7()) & ~(1n << (LOW_BITS - 1n)));
}

/** The id of a line. Ids increase with the lines, so the server's index grows at its end. */
export function idOfLine(firstId: string, line: number): string {
  return format(parseId(firstId) + BigInt(line));
}

function parseId(id: string): bigint {
  return BigInt(`0x${id.replaceAll("-", "")}`);
}

function format(id: bigint): string {
  const hex = id.toString(16).padStart(32, "0");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
