/**
 * Keys between the form that minted them and the one page that shows them. In memory alone: of a key
 * nothing but its hash is ever written down.
 */
import type { MintedKey } from "../../../domain/storage/registry.ts";
import { ExpiringMap } from "../../server/limits/expiring-map.ts";
import { nameOf, type Sender, SentForms } from "../../server/sessions/sent-forms.ts";
import { HOUR_MS, MINUTE_MS } from "../../../lib/text/time.ts";

/** How long a browser has to ask for the page. */
export const SHOWN_WITHIN_MS = MINUTE_MS;
const FORM_KNOWN_MS = HOUR_MS;
const KEYS_MAX = 10_000;

export interface Shown {
  readonly key: string;
  /** The id of the key that it replaces; null: none. */
  readonly replaces: string | null;
}

export class MintedKeys {
  /** By session and key id. */
  readonly #waiting = new ExpiringMap<Shown>(SHOWN_WITHIN_MS, KEYS_MAX);
  /** The ids of the keys that forms have minted. */
  readonly #forms = new SentForms<string>(FORM_KNOWN_MS);

  /** Returns the id of the key to be shown: each copy of the form mints one key. */
  once(
    sender: Sender,
    now: number,
    mint: () => Promise<{ readonly minted: MintedKey; readonly replaces: string | null }>,
  ): Promise<string> {
    return this.#forms.once(sender, now, async () => {
      const { minted, replaces } = await mint();
      const { id } = minted.record;
      this.#waiting.set(nameOf(sender.session, id), { key: minted.key, replaces }, now);
      return id;
    });
  }

  /** Returns null for another session, a second time, and too late. */
  take(session: string, keyId: string, now: number): Shown | null {
    return this.#waiting.take(nameOf(session, keyId), now);
  }
}
