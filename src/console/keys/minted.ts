/**
 * Keys between the form that minted them and the one page that shows them. In memory alone: of a key
 * nothing but its hash is ever written down.
 */
import type { MintedKey } from "../../domain/storage.ts";

/** How long a browser has to ask for the page. */
export const SHOWN_WITHIN_MS = 60_000;
/** How long a form that is sent again (a double click, a reload) is known for the same one. */
const FORM_KNOWN_MS = 60 * 60 * 1_000;
const FORMS_MAX = 10_000;

export interface Shown {
  readonly key: string;
  /** The id of the key that it replaces; null: none. */
  readonly replaces: string | null;
}

/** Who asks, and with which copy of the form: each copy mints one key. */
export interface Sender {
  /** The session's token. */
  readonly session: string;
  /** What the form was given when it was shown; null where none came back. */
  readonly form: string | null;
}

export class MintedKeys {
  /** By session and key id. */
  readonly #waiting = new Map<string, Shown & { readonly until: number; readonly timer: Timer }>();
  /** By session and form: the id of the key that it minted or is minting. */
  readonly #forms = new Map<string, { readonly keyId: Promise<string>; readonly until: number }>();

  /**
   * Returns the id of the key to be shown: the one that this form has minted already, or a new one. A form
   * that is sent again while its key is being minted waits for that key.
   */
  async once(
    { session, form }: Sender,
    now: number,
    mint: () => Promise<{ readonly minted: MintedKey; readonly replaces: string | null }>,
  ): Promise<string> {
    const name = form === null ? null : nameOf(session, form);
    const earlier = name === null ? undefined : this.#forms.get(name);
    if (earlier !== undefined && now < earlier.until) return earlier.keyId;
    const keyId = mint().then(({ minted, replaces }) => {
      const { id } = minted.record;
      this.#keep(nameOf(session, id), { key: minted.key, replaces }, now);
      return id;
    });
    if (name === null) return keyId;
    this.#remember(name, keyId, now);
    try {
      return await keyId;
    } catch (error) {
      this.#forms.delete(name);
      throw error;
    }
  }

  /** Null for another session, a second time, and too late. */
  take(session: string, keyId: string, now: number): Shown | null {
    const name = nameOf(session, keyId);
    const found = this.#waiting.get(name);
    if (found === undefined) return null;
    this.#waiting.delete(name);
    clearTimeout(found.timer);
    return now < found.until ? { key: found.key, replaces: found.replaces } : null;
  }

  #keep(name: string, shown: Shown, now: number): void {
    // A key that nobody asks for does not stay in memory until somebody asks for another.
    const timer = setTimeout(() => this.#waiting.delete(name), SHOWN_WITHIN_MS).unref();
    this.#waiting.set(name, { ...shown, until: now + SHOWN_WITHIN_MS, timer });
  }

  #remember(name: string, keyId: Promise<string>, now: number): void {
    for (const [other, { until }] of this.#forms) {
      if (until <= now || this.#forms.size >= FORMS_MAX) this.#forms.delete(other);
    }
    this.#forms.set(name, { keyId, until: now + FORM_KNOWN_MS });
  }
}

/** Fixed in length, whatever was sent, and no token. */
function nameOf(session: string, what: string): string {
  return new Bun.CryptoHasher("sha256", session).update(what).digest("base64url");
}
