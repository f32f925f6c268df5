/**
 * Keys between the form that minted them and the one page that shows them, sealed for the session: of a key nothing
 * but its hash is ever written down in the clear.
 */
import type { MintedKey } from "../../../domain/storage/registry.ts";
import type { Notes } from "../../../domain/storage/shared/notes.ts";
import { seal, unseal } from "../../server/sessions/seal.ts";
import { nameOf, type Sender, SentForms } from "../../server/sessions/sent-forms.ts";
import { HOUR_MS, MINUTE_MS } from "../../../lib/text/time.ts";

/** How long a browser has to ask for the page. */
export const SHOWN_WITHIN_MS = MINUTE_MS;
const FORM_KNOWN_MS = HOUR_MS;

export interface Shown {
  readonly key: string;
  /** The id of the key that it replaces; null: none. */
  readonly replaces: string | null;
}

export class MintedKeys {
  readonly #notes: Notes;
  /** The ids of the keys that forms have minted. */
  readonly #forms: SentForms<string>;

  constructor(notes: Notes) {
    this.#notes = notes;
    this.#forms = new SentForms(notes, FORM_KNOWN_MS);
  }

  /** Returns the id of the key to be shown: each copy of the form mints one key. */
  once(
    sender: Sender,
    mint: () => Promise<{ readonly minted: MintedKey; readonly replaces: string | null }>,
  ): Promise<string> {
    return this.#forms.once(sender, async () => {
      const { minted, replaces } = await mint();
      const { id } = minted.record;
      const shown: Shown = { key: minted.key, replaces };
      const { session } = sender;
      await this.#notes.set(nameOf(session, id), seal(session, shown), SHOWN_WITHIN_MS);
      return id;
    });
  }

  /** Returns null for another session, a second time, and too late. */
  async take(session: string, keyId: string): Promise<Shown | null> {
    const sealed = await this.#notes.take(nameOf(session, keyId));
    return sealed === null ? null : (unseal(session, sealed) as Shown);
  }
}
