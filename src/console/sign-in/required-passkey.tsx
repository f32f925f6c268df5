/** `/passkey`: where a password leads to at a desk that requires passkeys, until its member has added one. */
import { UserError } from "../../domain/errors.ts";
import { startSession } from "./admission.ts";
import { RequiredPasskeyPage } from "./joining.tsx";
import { FIRST_PASSKEY_NAME, PasskeyCeremonies } from "./passkeys.ts";
import { json, page, seeOther } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import { authorOf, isStillSignedIn, type MemberVisit, type Route } from "../web/visit.ts";

export function requiredPasskeyRoutes(services: ConsoleServices): Route[] {
  const area = new RequiredPasskey(services);
  const access = "signed-in";
  return [
    { method: "GET", path: "/passkey", access, handle: (visit) => area.show(visit) },
    { method: "POST", path: "/passkey", access, handle: (visit) => area.send(visit) },
    { method: "POST", path: "/passkey/options", access, handle: (visit) => area.options(visit) },
  ];
}

/** Nobody else may come here: adding a passkey to others takes the current password. */
class RequiredPasskey {
  readonly #services: ConsoleServices;
  readonly #passkeys: PasskeyCeremonies;

  constructor(services: ConsoleServices) {
    this.#services = services;
    this.#passkeys = new PasskeyCeremonies(services);
  }

  show(visit: MemberVisit, problem: string | null = null): Response {
    if (!visit.member.mustAddPasskey) return seeOther("/");
    const hasPasskeys = this.#passkeys.isPossible;
    return page(
      <RequiredPasskeyPage visit={visit} problem={problem} hasPasskeys={hasPasskeys} />,
      problem === null ? 200 : 422,
    );
  }

  async options(visit: MemberVisit): Promise<Response> {
    const { mustAddPasskey, memberId: id, email } = visit.member;
    if (!mustAddPasskey || !this.#passkeys.isPossible) {
      return json({ problem: "The page is out of date: load it again." }, 422);
    }
    return json({ options: await this.#passkeys.startAdding(visit, { id, email }, "join") });
  }

  async send(visit: MemberVisit): Promise<Response> {
    const { mustAddPasskey, memberId } = visit.member;
    if (!mustAddPasskey) return seeOther("/");
    const passkey = await this.#passkeys.finishAdding(visit, FIRST_PASSKEY_NAME, "join");
    if (passkey === null) return this.show(visit, "That took too long, or went wrong. Try again.");
    const { members, passkeys } = this.#services;
    const isSignedIn = await isStillSignedIn(this.#services, visit);
    const account = isSignedIn ? await members.find(memberId) : null;
    if (account === null) return seeOther("/sign-in");
    try {
      await passkeys.add(authorOf(visit), passkey);
    } catch (error) {
      if (error instanceof UserError) return this.show(visit, error.message);
      throw error;
    }
    await startSession(this.#services, visit, account, passkey.id);
    return seeOther("/");
  }
}
