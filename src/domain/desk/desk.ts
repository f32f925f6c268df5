/** Desks: the owners of keys and signals (`SPEC.md` 2.4). */
import { UserError } from "../../lib/errors.ts";

export interface Desk {
  readonly id: number;
  readonly name: string;
  /** Epoch milliseconds, UTC. */
  readonly created_at: number;
  /** Its keys and members are refused since then; null: in use. */
  readonly archived_at: number | null;
  /** How many duplicates differed from their original. */
  readonly differing_duplicates: number;
  /** Its members sign in with passkeys only. */
  readonly passkeys_required: boolean;
  /** Keeps what rejected requests and differing duplicates sent. */
  readonly keeps_sent: boolean;
  /** The limit on active keys. Keys in the overlap of a rotation do not count, and have the same limit. */
  readonly keys_max: number;
}

/** A desk's name, as people write it; or its id, which stays when the desk gets another name. */
export type DeskRef = string | number;

/** Stands for every desk where a name is expected: no desk has it. */
export const EVERY_DESK = "*";

/** A desk with what people ask first. */
export interface DeskOverview extends Desk {
  /** Those that send signals, and those that read. */
  readonly active_keys: number;
  /** How many of these read. */
  readonly read_keys: number;
  /** Invited ones included. */
  readonly members: number;
  /** Exact up to the number that was asked for, which stands for that many or more. */
  readonly signals: number;
  readonly latest_signal: {
    readonly id: string;
    /** Epoch milliseconds, UTC. */
    readonly received_at: number;
    /** Null: it does not match its hash, see docs/reliability.md. */
    readonly symbol: string | null;
  } | null;
}

/** Counting takes milliseconds up to here, and seconds for 100 million. */
export const SIGNALS_COUNTED_MAX = 100_000;

/** Plain, because people type it on command lines and read it in logs. */
const DESK_NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;

/** Lists show it as the desk of keys for all desks. */
const ALL_DESKS = "all";

export function checkDeskName(name: string): string {
  if (name === ALL_DESKS) {
    throw new UserError(
      `"${name}" cannot be a desk's name: it stands for all desks in lists of keys. Use another name, for example desk-1.`,
    );
  }
  if (DESK_NAME.test(name)) return name;
  throw new UserError(
    `"${name}" cannot be a desk's name: use 1 to 63 lower-case letters, digits, dots, dashes and underscores, and begin with a letter or digit, for example desk-1.`,
  );
}
