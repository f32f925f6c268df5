/** What members do with their own account. */
import { UserError } from "../../domain/errors.ts";
import { type Account, checkPasskeyName } from "../../domain/member.ts";
import { startSession } from "../sign-in/admission.ts";
import { Confirmation } from "./confirmation.ts";
import { hashNewPassword } from "../sign-in/credentials.ts";
import { limited, tooManyAttempts } from "../web/limited.tsx";
import { AccountPage } from "./page.tsx";
import { passkeyRemovalRoutes } from "./passkey-removal-routes.tsx";
import { PasskeyCeremonies } from "../sign-in/passkeys.ts";
import { json, page, seeOther } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import { authorOf, isStillSignedIn, type MemberVisit, type Route } from "../web/visit.ts";

type MemberRoute = Extract<Route, { access: "member" | "signed-in" }>;

export function accountRoutes(services: ConsoleServices): Route[] {
  const confirmation = new Confirmation(services);
  const area = new AccountArea(services, confirmation);
  return [
    { method: "GET", path: "/account", access: "member", handle: (visit) => area.show(visit) },
    post("/account/password", (visit) => area.changePassword(visit)),
    post("/account/passkeys/options", (visit) => area.passkeyOptions(visit)),
    post("/account/passkeys", (visit) => area.addPasskey(visit)),
    post("/account/sessions/:id/end", (visit) => area.endSession(visit)),
    post("/account/sign-out-everywhere", (visit) => area.signOutElsewhere(visit)),
    confirmation.route,
    ...passkeyRemovalRoutes(services, confirmation),
  ];
}

function post(path: string, handle: MemberRoute["handle"]): Route {
  return { method: "POST", path, formPage: "/account", access: "member", handle };
}

class AccountArea {
  readonly #services: ConsoleServices;
  readonly #passkeys: PasskeyCeremonies;
  readonly #confirmation: Confirmation;

  constructor(services: ConsoleServices, confirmation: Confirmation) {
    this.#services = services;
    this.#confirmation = confirmation;
    this.#passkeys = new PasskeyCeremonies(services);
  }

  async show(visit: MemberVisit, problem: string | null = null): Promise<Response> {
    const { members, passkeys, sessions } = this.#services;
    const account = await members.find(visit.member.memberId);
    if (account === null) return seeOther("/sign-in");
    const state = {
      account,
      passkeys: await passkeys.list(account.id),
      sessions: await sessions.list(account.id, visit.now),
      ways: await this.#confirmation.waysOf(visit),
      canHavePasskeys: this.#passkeys.isPossible,
      problem,
    };
    return page(<AccountPage visit={visit} state={state} />, problem === null ? 200 : 422);
  }

  async changePassword(visit: MemberVisit): Promise<Response> {
    const { members } = this.#services;
    const { hasPassword } = await this.#confirmation.waysOf(visit);
    if ((await members.find(visit.member.memberId))?.passkeys_required === true) {
      return this.show(visit, "Your desk requires passkeys: a password would not let you in.");
    }
    const proof = await this.#confirmation.check(visit);
    if (proof.outcome === "limited") return limited(visit, proof.retryAt);
    if (proof.outcome === "wrong") return this.show(visit, proof.problem);
    const password = visit.form.get("new") ?? "";
    const { memberId: id, email, desk } = visit.member;
    const chosen = await hashNewPassword(this.#services, { id, email, desk }, password);
    if ("problem" in chosen) return this.show(visit, chosen.problem);
    if (!(await isStillSignedIn(this.#services, visit))) return seeOther("/sign-in");
    const done = hasPassword ? "password" : "password-set";
    const account = await members.setPassword(authorOf(visit), chosen.hash);
    return this.#beginAgain(visit, account, done);
  }

  /** The challenge in them is the proof for {@link addPasskey}: it comes back once, from this session. */
  async passkeyOptions(visit: MemberVisit): Promise<Response> {
    if (!this.#passkeys.isPossible) return json({ problem: "There are no passkeys here." }, 422);
    const problem = passkeyNameProblem(visit);
    if (problem !== null) return json({ problem }, 422);
    const proof = await this.#confirmation.check(visit);
    if (proof.outcome === "limited") {
      return json({ problem: tooManyAttempts(proof.retryAt, visit.now) }, 429);
    }
    if (proof.outcome === "wrong") return json({ problem: proof.problem }, 422);
    const { memberId: id, email } = visit.member;
    return json({ options: await this.#passkeys.startAdding(visit, { id, email }, "add") });
  }

  async addPasskey(visit: MemberVisit): Promise<Response> {
    const name = visit.form.get("name") ?? "";
    const problem = passkeyNameProblem(visit);
    if (problem !== null) return this.show(visit, problem);
    const passkey = await this.#passkeys.finishAdding(visit, name, "add");
    if (passkey === null) return this.show(visit, "That took too long, or went wrong. Try again.");
    if (!(await isStillSignedIn(this.#services, visit))) return seeOther("/sign-in");
    try {
      await this.#services.passkeys.add(authorOf(visit), passkey);
    } catch (error) {
      if (error instanceof UserError) return this.show(visit, error.message);
      throw error;
    }
    return seeOther("/account?done=passkey");
  }

  /** One that has ended meanwhile is no problem: the member wanted it gone. */
  endSession(visit: MemberVisit): Response {
    this.#services.sessions.endOne(visit.member.memberId, visit.params["id"] ?? "");
    return seeOther("/account?done=ended");
  }

  async signOutElsewhere(visit: MemberVisit): Promise<Response> {
    const account = await this.#services.members.signOutEverywhere(authorOf(visit));
    return this.#beginAgain(visit, account, "elsewhere");
  }

  /** All sessions have ended: this browser gets another one. */
  async #beginAgain(visit: MemberVisit, account: Account, done: string): Promise<Response> {
    await startSession(this.#services, visit, account, visit.member.session.passkeyId);
    return seeOther(`/account?done=${done}`);
  }
}

function passkeyNameProblem({ form }: MemberVisit): string | null {
  try {
    checkPasskeyName(form.get("name") ?? "");
    return null;
  } catch (error) {
    if (error instanceof UserError) return error.message;
    throw error;
  }
}
