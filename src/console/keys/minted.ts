/**
 * Keys between the form that minted them and the one page that shows them. In memory alone: of a key
 * nothing but its hash is ever written down.
 */
import { generateToken } from "../../domain/member.ts";
import type { MintedKey } from "../../domain/storage.ts";
import { ExpiringMap } from "../web/expiring-map.ts";

/** How long a browser has to ask for the page. */
export const SHOWN_WITHIN_MS = 60_000;
/** How long a form that is sent again (a double click, a reload) is known for the same one. */
const FORM_KNOWN_MS = 60 * 60 * 1_000;
const FORMS_MAX = 10_000;
const KEYS_MAX = 10_000;

export interface Shown {
  readonly key: string;
  /** The id of the key that it replaces; null: none. */
  readonly replaces: string | null;
}

/** Who asks, and with which copy of the form: each copy mints one key. */
export interface Sender {
  /** The session's token. */
  readonly session: string;
  /** The token of the copy, as sent; null: none. */
  readonly form: string | null;
}

export class MintedKeys {
  /** By session and key id. */
  readonly #waiting = new ExpiringMap<Shown>(SHOWN_WITHIN_MS, KEYS_MAX);
  /** By session and form: the id of the key that it minted or is minting. */
  readonly #forms = new ExpiringMap<Promise<string>>(FORM_KNOWN_MS, FORMS_MAX);

  /**
   * Returns the id of the key to be shown: the one that this form has minted already, or a new one. A form
   * that is sent again while its key is being minted waits for that key.
   */
  async once(
    { session, form }: Sender,
    now: number,
    mint: () => Promise<{ readonly minted: MintedKey; readonly replaces: string | null }>,
  ): Promise<string> {
    const name = nameOf(session, form ?? generateToken());
    const earlier = this.#forms.get(name, now);
    if (earlier !== null) return earlier;
    const keyId = mint().then(({ minted, replaces }) => {
      const { id } = minted.record;
      this.#keep(nameOf(session, id), { key: minted.key, replaces }, now);
      return id;
    });
    this.#forms.set(name, keyId, now);
    try {
      return await keyId;
    } catch (error) {
      this.#forms.delete(name);
      throw error;
    }
  }

  /** Returns null for another session, a second time, and too late. */
  take(session: string, keyId: string, now: number): Shown | null {
    return this.#waiting.take(nameOf(session, keyId), now);
  }

  #keep(name: string, shown: Shown, now: number): void {
    this.#waiting.set(name, shown, now);
    // A key that nobody asks for does not stay in memory.
    setTimeout(() => this.#waiting.delete(name), SHOWN_WITHIN_MS).unref();
  }
}

/** Has a fixed length, and contains no token. */
function nameOf(session: string, what: string): string {
  return new Bun.CryptoHasher("sha256", session).update(what).digest("base64url");
}
