/** Removing a passkey: only after the member has proved once more who they are. */
import { NotFoundError, UserError } from "../../domain/errors.ts";
import type { Passkey } from "../../domain/member.ts";
import type { Confirmation } from "./confirmation.ts";
import { limited } from "../web/limited.tsx";
import { RemovePasskeyPage } from "./passkey-removal-page.tsx";
import { notFoundPage } from "../web/problems.tsx";
import { page, seeOther } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import { authorOf, isStillSignedIn, type MemberVisit, type Route } from "../web/visit.ts";

export function passkeyRemovalRoutes(
  services: ConsoleServices,
  confirmation: Confirmation,
): Route[] {
  const removal = new PasskeyRemoval(services, confirmation);
  const path = "/account/passkeys/:id/remove";
  return [
    { method: "GET", path, access: "member", handle: (visit) => removal.show(visit) },
    { method: "POST", path, access: "member", handle: (visit) => removal.send(visit) },
  ];
}

class PasskeyRemoval {
  readonly #services: ConsoleServices;
  readonly #confirmation: Confirmation;

  constructor(services: ConsoleServices, confirmation: Confirmation) {
    this.#services = services;
    this.#confirmation = confirmation;
  }

  async show(visit: MemberVisit, problem: string | null = null): Promise<Response> {
    const passkey = await this.#find(visit);
    if (passkey === null) return notFoundPage();
    const state = {
      passkey,
      ways: await this.#confirmation.waysOf(visit),
      obstacle: await this.#services.passkeys.removalObstacle(visit.member.memberId, passkey.id),
      problem,
    };
    return page(<RemovePasskeyPage visit={visit} state={state} />, problem === null ? 200 : 422);
  }

  async send(visit: MemberVisit): Promise<Response> {
    if ((await this.#find(visit)) === null) return notFoundPage();
    const confirmed = await this.#confirmation.check(visit);
    if (confirmed.outcome === "limited") return limited(visit, confirmed.retryAt);
    if (confirmed.outcome === "wrong") return this.show(visit, confirmed.problem);
    if (!(await isStillSignedIn(this.#services, visit))) return seeOther("/sign-in");
    try {
      await this.#services.passkeys.remove(authorOf(visit), idOf(visit));
    } catch (error) {
      if (error instanceof NotFoundError) return notFoundPage();
      if (error instanceof UserError) return this.show(visit, error.message);
      throw error;
    }
    return seeOther("/account?done=removed");
  }

  /** Another member's is as unknown as one that does not exist. */
  async #find(visit: MemberVisit): Promise<Passkey | null> {
    const passkeys = await this.#services.passkeys.list(visit.member.memberId);
    return passkeys.find(({ id }) => id === idOf(visit)) ?? null;
  }
}

function idOf({ params }: MemberVisit): string {
  return params["id"] ?? "";
}
