/** Desks: the owners of keys and signals (`SPEC.md` 2.4). */
import { UserError } from "./errors.ts";

export interface Desk {
  readonly id: number;
  readonly name: string;
  /** Epoch milliseconds, UTC. */
  readonly created_at: number;
  /** Duplicates whose content differed from the original's, since the desk was created. */
  readonly differing_duplicates: number;
  /** Its members sign in with passkeys only. */
  readonly passkeys_required: boolean;
  /** How many active keys it may have; keys in the overlap of a rotation do not count, but may be as many again. */
  readonly keys_max: number;
}

/** A name is typed on command lines and read in logs, so it is kept plain. */
const DESK_NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;

export function checkDeskName(name: string): string {
  if (DESK_NAME.test(name)) return name;
  throw new UserError(
    `"${name}" cannot be a desk's name: use 1 to 63 lower-case letters, digits, dots, dashes and underscores, for example ${suggestName(name)}.`,
  );
}

function suggestName(name: string): string {
  const plain = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, 63);
  return plain === "" ? "desk-1" : plain;
}
