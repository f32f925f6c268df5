/** @jsxImportSource preact */
/** Removing a passkey: only after the member has proved once more who they are. */
import { NotFoundError, UserError } from "../domain/errors.ts";
import type { Passkey } from "../domain/member.ts";
import { auditFailure, checkPassword } from "./credentials.ts";
import { limited } from "./limited.tsx";
import { RemovePasskeyPage } from "./pages/passkey-removal.tsx";
import { notFoundPage } from "./pages/problems.tsx";
import { PasskeyCeremonies, RESPONSE_FIELD } from "./passkeys.ts";
import { json, page, seeOther } from "./responses.ts";
import type { ConsoleServices } from "./services.ts";
import { isStillSignedIn, type MemberVisit, type Route } from "./visit.ts";

const WRONG_PASSWORD = "The current password is not right. Nothing was changed.";
const WRONG_PASSKEY =
  "That is not one of your passkeys, or it took too long. Nothing was changed. Try again.";

export function passkeyRemovalRoutes(services: ConsoleServices): Route[] {
  const removal = new PasskeyRemoval(services);
  const path = "/account/passkeys/:id/remove";
  return [
    { method: "GET", path, access: "member", handle: (visit) => removal.show(visit) },
    { method: "POST", path, access: "member", handle: (visit) => removal.send(visit) },
    {
      method: "POST",
      path: `${path}/options`,
      access: "member",
      handle: (visit) => removal.options(visit),
    },
  ];
}

class PasskeyRemoval {
  readonly #services: ConsoleServices;
  readonly #passkeys: PasskeyCeremonies;

  constructor(services: ConsoleServices) {
    this.#services = services;
    this.#passkeys = new PasskeyCeremonies(services);
  }

  show(visit: MemberVisit, problem: string | null = null): Response {
    const passkey = this.#find(visit);
    if (passkey === null) return notFoundPage();
    const hasPassword = this.#services.members.find(visit.member.memberId)?.has_password === true;
    return page(
      <RemovePasskeyPage visit={visit} state={{ passkey, hasPassword, problem }} />,
      problem === null ? 200 : 422,
    );
  }

  async options(visit: MemberVisit): Promise<Response> {
    return json({ options: await this.#passkeys.startProving(visit, "remove") });
  }

  async send(visit: MemberVisit): Promise<Response> {
    if (this.#find(visit) === null) return notFoundPage();
    const refusal = await (visit.form.has(RESPONSE_FIELD)
      ? this.#refuseByPasskey(visit)
      : this.#refuseByPassword(visit));
    if (refusal !== null) return refusal;
    if (!isStillSignedIn(this.#services, visit)) return seeOther("/sign-in");
    try {
      this.#services.passkeys.remove(visit.member.memberId, idOf(visit));
    } catch (error) {
      if (error instanceof NotFoundError) return notFoundPage();
      if (error instanceof UserError) return this.show(visit, error.message);
      throw error;
    }
    return seeOther("/account?done=removed");
  }

  /** Null where the password is right. */
  async #refuseByPassword(visit: MemberVisit): Promise<Response | null> {
    const { email } = visit.member;
    const password = visit.form.get("current") ?? "";
    const purpose = "with a password on the account page";
    const checked = await checkPassword(this.#services, visit, { email, password, purpose });
    if (checked.outcome === "limited") return limited(visit, checked.retryAt);
    return checked.outcome === "right" ? null : this.show(visit, WRONG_PASSWORD);
  }

  /** Null where it is one of the member's own, the one to be removed included. */
  async #refuseByPasskey(visit: MemberVisit): Promise<Response | null> {
    const result = await this.#passkeys.finishProving(visit, "remove");
    const { memberId, deskId } = visit.member;
    if (result.outcome === "right" && result.account.id === memberId) return null;
    if (result.outcome === "refused") {
      auditFailure(this.#services, visit, { id: memberId, desk_id: deskId }, result.reason);
    }
    return this.show(visit, WRONG_PASSKEY);
  }

  /** Another member's is as unknown as one that does not exist. */
  #find(visit: MemberVisit): Passkey | null {
    const passkeys = this.#services.passkeys.list(visit.member.memberId);
    return passkeys.find(({ id }) => id === idOf(visit)) ?? null;
  }
}

function idOf({ params }: MemberVisit): string {
  return params["id"] ?? "";
}
