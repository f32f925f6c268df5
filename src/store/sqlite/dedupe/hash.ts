/** The 32 bits that a desk's `client_signal_id` is looked up by. */

/** Desk and id in one text. */
export function nameOf(deskId: number, clientSignalId: string): string {
  return `${deskId}:${clientSignalId}`;
}

/**
 * Of SHA-256 over a seed of the database and the name: without the seed nobody can make ids whose hashes
 * are the same, which would make each look-up a long one. Ids of one hash are told apart by the signals
 * themselves.
 */
export class IdHash {
  readonly seed: string;
  readonly #digest = new Uint8Array(32);
  readonly #view = new DataView(this.#digest.buffer);

  constructor(seed: string) {
    this.seed = seed;
  }

  of(name: string): number {
    Bun.SHA256.hash(this.seed + name, this.#digest);
    return this.#view.getUint32(0, true);
  }
}

export function newSeed(): string {
  return crypto.getRandomValues(new Uint8Array(8)).toHex();
}
