/** Forms that make nothing more when they are sent again, by a double click or a reload. */
import { generateToken } from "../../../domain/member/member.ts";
import { ExpiringMap } from "../limits/expiring-map.ts";
import { cookieNames, type MemberVisit } from "../visit.ts";

/** The field that tells each copy of a form from every other. */
export const COPY_FIELD = "copy";

const FORMS_MAX = 10_000;

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

export class SentForms<T> {
  readonly #made: ExpiringMap<Promise<T>>;

  /** `lifetimeMs`: how long a form is known for the same one. */
  constructor(lifetimeMs: number) {
    this.#made = new ExpiringMap(lifetimeMs, FORMS_MAX);
  }

  /** Returns what this copy of the form has made already, or is making; otherwise makes it. */
  async once({ session, form }: Sender, now: number, make: () => Promise<T>): Promise<T> {
    const name = nameOf(session, form ?? generateToken());
    const earlier = this.#made.get(name, now);
    if (earlier !== null) return earlier;
    const made = make();
    this.#made.set(name, made, now);
    try {
      return await made;
    } catch (error) {
      this.#made.delete(name);
      throw error;
    }
  }
}

/** Has a fixed length, and contains no token. */
export function nameOf(session: string, what: string): string {
  return new Bun.CryptoHasher("sha256", session).update(what).digest("base64url");
}
