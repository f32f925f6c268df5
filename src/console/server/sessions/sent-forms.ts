/** Forms that make nothing more when they are sent again, by a double click or a reload. */
import type { Notes } from "../../../domain/storage/shared/notes.ts";
import { SECOND_MS } from "../../../lib/text/time.ts";
import { seal, unseal } from "./seal.ts";
import { cookieNames, type MemberVisit } from "../visit.ts";

/** The field that tells each copy of a form from every other. */
export const COPY_FIELD = "copy";

/** How long the server that handles the form has for it. */
const MAKING_MS = 30 * SECOND_MS;
const MAKING = "";
const LOOK_EVERY_MS = 50;

/** Who sends which copy of a form. */
export interface Sender {
  /** The session's token. */
  readonly session: string;
  /** The token of the copy, as sent; null: none. */
  readonly form: string | null;
}

export function senderOf({ cookies, form }: MemberVisit): Sender {
  const session = cookies.get(cookieNames.session);
  if (session === null) throw new Error("a member without a session");
  return { session, form: form.get(COPY_FIELD) };
}

/** `T`: what JSON can say. */
export class SentForms<T> {
  readonly #notes: Notes;
  readonly #lifetimeMs: number;

  /** `lifetimeMs`: how long a form is known for the same one. */
  constructor(notes: Notes, lifetimeMs: number) {
    this.#notes = notes;
    this.#lifetimeMs = lifetimeMs;
  }

  /**
   * Returns what this copy of the form has made already, or waits while another request makes it; otherwise makes
   * it, also when that request failed.
   */
  async once({ session, form }: Sender, make: () => Promise<T>): Promise<T> {
    if (form === null) return make();
    const name = nameOf(session, form);
    while (!(await this.#notes.add(name, MAKING, MAKING_MS))) {
      const made = await this.#notes.get(name);
      if (made !== null && made !== MAKING) return unseal(session, made) as T;
      await Bun.sleep(LOOK_EVERY_MS);
    }
    try {
      const made = await make();
      await this.#notes.set(name, seal(session, made), this.#lifetimeMs);
      return made;
    } catch (error) {
      await this.#notes.delete(name);
      throw error;
    }
  }
}

/** Has a fixed length, and contains no token. */
export function nameOf(session: string, what: string): string {
  return new Bun.CryptoHasher("sha256", session).update(what).digest("base64url");
}
