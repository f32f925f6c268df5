/**
 * A hash of everything that is stored of a signal but its place (`seq`, which a copy may change): a flipped bit on the
 * disk makes the two differ, and the signal is not handed out.
 *
 * It is the xxHash3 of the values as a JSON array, combined by XOR with the number that the first 20 characters of the id
 * are: PostgreSQL makes those in the statement that stores a batch, and combines them there (`store/postgres/batch.ts`).
 */
import type { Submission } from "../storage/append.ts";
import { AppError } from "../errors.ts";
import { showHidden } from "../../lib/text/hidden.ts";
import { isUlid } from "./id.ts";
import { fieldNames, type Signal } from "./signal.ts";

/** Characters of an id: ten of the time, and ten more. */
const HEAD_CHARACTERS = 20;
/** Of bits: half of ten characters. */
const HALF = 2 ** 25;

const values = new Uint8Array(128);
for (const [value, digit] of Array.from("0123456789ABCDEFGHJKMNPQRSTVWXYZ").entries()) {
  values[digit.charCodeAt(0)] = value;
}

/** A signal with all that its hash covers. */
export interface HashedSignal extends Signal {
  readonly id: string;
  readonly desk_id: number;
  readonly key_id: string;
  readonly received_at: number;
  /** Eight bytes: drivers return no 64-bit integer exactly. */
  readonly hash: Uint8Array;
}

/** Without the head of the id. `tail`: the rest of it. */
export function hashWithoutHead(tail: string, submission: Submission): bigint {
  const { deskId, keyId, receivedAt, signal } = submission;
  const fields = fieldNames.map((name) => signal[name]);
  const text = JSON.stringify([tail, deskId, keyId, receivedAt, fields]);
  return BigInt.asIntN(64, Bun.hash.xxHash3(text));
}

export function hashOf(id: string, submission: Submission): Uint8Array {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigInt64BE(hashWithoutHead(id.slice(HEAD_CHARACTERS), submission) ^ headOf(id));
  return bytes;
}

/** Whether a stored signal is the one that was sent. */
export function isIntact(stored: HashedSignal): boolean {
  const { id, desk_id, key_id, received_at, hash } = stored;
  // Damage may have changed the types, too.
  if (!isUlid(id) || !(hash instanceof Uint8Array)) return false;
  const known = { deskId: desk_id, keyId: key_id, receivedAt: received_at, signal: stored };
  return Buffer.compare(hash, hashOf(id, known)) === 0;
}

/** The first ten characters and the next ten, as numbers, combined by XOR. */
function headOf(id: string): bigint {
  const high = numberAt(id, 0) ^ numberAt(id, 10);
  const low = numberAt(id, 5) ^ numberAt(id, 15);
  return BigInt(high * HALF + low);
}

/** Of five characters. */
function numberAt(id: string, start: number): number {
  let number = 0;
  for (let at = start; at < start + 5; at += 1) {
    number = number * 32 + (values[id.charCodeAt(at)] ?? 0);
  }
  return number;
}

/** For `verify` and `doctor`. */
export function describeDamaged({ id }: { readonly id: unknown }): string {
  return `signal ${showHidden(String(id))} does not match its hash`;
}

/** What readers get instead of it. */
export function damagedSignal(id: string): AppError {
  const message = `Signal ${showHidden(id)} is damaged on the server's disk, and is not handed out: its administrator can restore a backup.`;
  return new AppError("damaged_signal", { signalId: id, message });
}

/** The id of the signal of {@link damagedSignal}. Throws any other error. */
export function damagedId(error: unknown): string {
  const id = error instanceof AppError ? error.detail.signalId : undefined;
  if (id === undefined) throw error;
  return id;
}
