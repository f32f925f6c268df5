/** Asks members to confirm, by their password or a passkey, a change of how they sign in. */
import { auditFailure, checkPassword } from "../sign-in/credentials.ts";
import { PasskeyCeremonies, RESPONSE_FIELD } from "../sign-in/passkeys.ts";
import { json } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import type { MemberVisit, Route } from "../web/visit.ts";

/** Where the script gets the options for a passkey that confirms. */
export const CONFIRM_OPTIONS_PATH = "/account/confirm/options";

const WRONG_PASSWORD = "The current password is not right. Nothing was changed.";
const WRONG_PASSKEY =
  "That is not one of your passkeys, or it took too long. Nothing was changed. Try again.";
const PASSKEY_ONLY = "You have no password: confirm with a passkey. Nothing was changed.";

/** How the member can confirm. */
export interface Ways {
  readonly hasPassword: boolean;
  readonly hasPasskey: boolean;
}

/** `retryAt`: epoch milliseconds. */
export type Confirmed =
  | { readonly outcome: "right" }
  | { readonly outcome: "wrong"; readonly problem: string }
  | { readonly outcome: "limited"; readonly retryAt: number };

export class Confirmation {
  readonly #services: ConsoleServices;
  readonly #passkeys: PasskeyCeremonies;

  constructor(services: ConsoleServices) {
    this.#services = services;
    this.#passkeys = new PasskeyCeremonies(services);
  }

  get route(): Route {
    return {
      method: "POST",
      path: CONFIRM_OPTIONS_PATH,
      access: "member",
      handle: async (visit) =>
        json({ options: await this.#passkeys.startProving(visit, "confirm") }),
    };
  }

  async waysOf({ member: { memberId } }: MemberVisit): Promise<Ways> {
    const { members, passkeys } = this.#services;
    return {
      hasPassword: (await members.find(memberId))?.has_password === true,
      hasPasskey: this.#passkeys.isPossible && (await passkeys.list(memberId)).length > 0,
    };
  }

  /** Checks the passkey's answer if the form has one, else the current password. */
  check(visit: MemberVisit): Promise<Confirmed> {
    const hasAnswer = (visit.form.get(RESPONSE_FIELD) ?? "") !== "";
    return hasAnswer ? this.#byPasskey(visit) : this.#byPassword(visit);
  }

  async #byPassword(visit: MemberVisit): Promise<Confirmed> {
    const { hasPassword } = await this.waysOf(visit);
    if (!hasPassword) return { outcome: "wrong", problem: PASSKEY_ONLY };
    const { email, memberId } = visit.member;
    const password = visit.form.get("current") ?? "";
    const failure = failureOf(memberId, "typed a wrong current password on the account page");
    const checked = await checkPassword(this.#services, visit, { email, password, failure });
    return checked.outcome === "wrong" ? { outcome: "wrong", problem: WRONG_PASSWORD } : checked;
  }

  /** Any passkey of the member's own confirms. */
  async #byPasskey(visit: MemberVisit): Promise<Confirmed> {
    const result = await this.#passkeys.finishProving(visit, "confirm");
    const { memberId, deskId } = visit.member;
    if (result.outcome === "right" && result.account.id === memberId) return { outcome: "right" };
    if (result.outcome === "refused") {
      const failure = failureOf(memberId, `came ${result.reason}`);
      await auditFailure(this.#services, visit, { id: memberId, desk_id: deskId }, failure);
    }
    return { outcome: "wrong", problem: WRONG_PASSKEY };
  }
}

function failureOf(actor: string, detail: string) {
  return { actor, action: "member.confirmation_failed", detail } as const;
}
