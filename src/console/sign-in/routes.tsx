/** Getting in: with a password, a passkey, or a one-time link. And out again. */
import { UserError } from "../../domain/errors.ts";
import type { Account } from "../../domain/member.ts";
import { admit, endSession } from "./admission.ts";
import { auditFailure, checkPassword, hashNewPassword } from "./credentials.ts";
import { limited } from "../web/limited.tsx";
import { localPath } from "../web/safe-redirect.ts";
import { JoinPage } from "./joining.tsx";
import { LinkGonePage, SignInPage, type SignInState } from "./page.tsx";
import { FIRST_PASSKEY_NAME, PasskeyCeremonies } from "./passkeys.ts";
import { json, page, seeOther } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import type { MemberVisit, Route, Visit } from "../web/visit.ts";

/** Says nothing of which of the two was wrong. */
const WRONG = "Wrong email or password.";
const WRONG_PASSKEY =
  "The passkey is not one of a member, or it took too long. Try again, or use your password.";
const PASSKEY_ONLY = "This desk requires a passkey: a password does not let you in.";
const BY_LINK = "with a one-time link";

export function signInRoutes(services: ConsoleServices): Route[] {
  const area = new SignIn(services);
  return [
    { method: "GET", path: "/sign-in", access: "public", handle: (visit) => area.show(visit) },
    { method: "POST", path: "/sign-in", access: "public", handle: (visit) => area.send(visit) },
    {
      method: "POST",
      path: "/sign-in/passkey/options",
      access: "public",
      handle: (visit) => area.passkeyOptions(visit),
    },
    {
      method: "POST",
      path: "/sign-in/passkey",
      access: "public",
      handle: (visit) => area.sendPasskey(visit),
    },
    {
      method: "POST",
      path: "/sign-out",
      formPage: "/",
      access: "signed-in",
      handle: (visit) => area.leave(visit),
    },
    ...joinRoutes(services),
  ];
}

class SignIn {
  readonly #services: ConsoleServices;
  readonly #passkeys: PasskeyCeremonies;

  constructor(services: ConsoleServices) {
    this.#services = services;
    this.#passkeys = new PasskeyCeremonies(services);
  }

  show(visit: Visit): Response {
    const next = localPath(visit.url.searchParams.get("next"));
    if (visit.member !== null) return seeOther(next);
    return this.#page(visit, { email: "", next, problem: null });
  }

  async send(visit: Visit): Promise<Response> {
    const { form } = visit;
    const [email, password] = [form.get("email") ?? "", form.get("password") ?? ""];
    const next = localPath(form.get("next"));
    if (email === "" || password === "") {
      const problem = "Type your email address and your password.";
      return this.#page(visit, { email, next, problem });
    }
    const how = "with a password";
    const failure = failedSignIn(how);
    const checked = await checkPassword(this.#services, visit, { email, password, failure });
    switch (checked.outcome) {
      case "right":
        await admit(this.#services, visit, checked.account, { how, passkeyId: null });
        return seeOther(next);
      case "wrong":
        return this.#page(visit, { email, next, problem: WRONG });
      case "limited":
        return limited(visit, checked.retryAt);
    }
  }

  async passkeyOptions(visit: Visit): Promise<Response> {
    if (!this.#passkeys.isPossible) return json({ problem: "There are no passkeys here." }, 422);
    return json({ options: await this.#passkeys.startProving(visit, "sign-in") });
  }

  /** Failures are not limited: nobody guesses a signature. */
  async sendPasskey(visit: Visit): Promise<Response> {
    const next = localPath(visit.form.get("next"));
    const result = await this.#passkeys.finishProving(visit, "sign-in");
    if (result.outcome === "right") {
      const { account, id, name } = result;
      const retryAt = this.#services.throttle.beginPasskeySession(id);
      if (retryAt > visit.now) return this.#limited(visit, retryAt);
      await admit(this.#services, visit, account, {
        how: `with the passkey "${name}"`,
        passkeyId: id,
      });
      return seeOther(next);
    }
    this.#services.failedSignIns.count("refused_passkey", visit.address);
    if (result.outcome === "refused") {
      const owner = await this.#services.members.find(result.memberId);
      const failure = failedSignIn(result.reason);
      if (owner !== null) await auditFailure(this.#services, visit, owner, failure);
    }
    return this.#page(visit, { email: "", next, problem: WRONG_PASSKEY });
  }

  #limited(visit: Visit, retryAt: number): Response {
    this.#services.failedSignIns.count("throttled", visit.address);
    return limited(visit, retryAt);
  }

  leave(visit: MemberVisit): Response {
    endSession(this.#services, visit);
    return seeOther("/sign-in");
  }

  #page(visit: Visit, state: SignInState): Response {
    const hasPasskeys = this.#passkeys.isPossible;
    return page(
      <SignInPage visit={visit} state={state} hasPasskeys={hasPasskeys} />,
      state.problem === null ? 200 : 422,
    );
  }
}

function failedSignIn(detail: string) {
  return { actor: null, action: "member.sign_in_failed", detail } as const;
}

/** One-time links. Only a form spends one: programs that look at links in messages use GET. */
function joinRoutes(services: ConsoleServices): Route[] {
  const area = new Join(services);
  return [
    { method: "GET", path: "/join/:token", access: "public", handle: (visit) => area.show(visit) },
    { method: "POST", path: "/join/:token", access: "public", handle: (visit) => area.send(visit) },
    {
      method: "POST",
      path: "/join/:token/passkey/options",
      access: "public",
      handle: (visit) => area.passkeyOptions(visit),
    },
    {
      method: "POST",
      path: "/join/:token/passkey",
      access: "public",
      handle: (visit) => area.sendPasskey(visit),
    },
  ];
}

class Join {
  readonly #services: ConsoleServices;
  readonly #passkeys: PasskeyCeremonies;

  constructor(services: ConsoleServices) {
    this.#services = services;
    this.#passkeys = new PasskeyCeremonies(services);
  }

  async show(visit: Visit, problem: string | null = null): Promise<Response> {
    const token = tokenOf(visit);
    const invitation = await this.#services.members.findInvitation(token);
    if (invitation === null) return gone();
    return page(
      <JoinPage
        visit={visit}
        path={`/join/${token}`}
        kind={invitation.kind}
        member={invitation.member}
        needsPasskey={invitation.passkeys_required}
        problem={problem}
        hasPasskeys={this.#passkeys.isPossible}
      />,
      problem === null ? 200 : 422,
    );
  }

  async send(visit: Visit): Promise<Response> {
    const { members } = this.#services;
    const token = tokenOf(visit);
    const invitation = await members.findInvitation(token);
    if (invitation === null) return gone();
    if (invitation.passkeys_required) return this.show(visit, PASSKEY_ONLY);
    const password = visit.form.get("password") ?? "";
    const chosen = await hashNewPassword(this.#services, invitation.member, password);
    if ("problem" in chosen) return this.show(visit, chosen.problem);
    const account = await members.spendWithPassword(token, chosen.hash, visit.address);
    if (account === null) return gone();
    await admit(this.#services, visit, account, { how: BY_LINK, passkeyId: null });
    return seeOther("/");
  }

  async passkeyOptions(visit: Visit): Promise<Response> {
    const invitation = await this.#services.members.findInvitation(tokenOf(visit));
    if (invitation === null || !this.#passkeys.isPossible) {
      return json({ problem: "The link does not work any more: load the page again." }, 422);
    }
    return json({ options: await this.#passkeys.startAdding(visit, invitation.member, "join") });
  }

  async sendPasskey(visit: Visit): Promise<Response> {
    const passkey = await this.#passkeys.finishAdding(visit, FIRST_PASSKEY_NAME, "join");
    if (passkey === null) return this.show(visit, "That took too long, or went wrong. Try again.");
    const { members } = this.#services;
    let account: Account | null;
    try {
      account = await members.spendWithPasskey(tokenOf(visit), passkey, visit.address);
    } catch (error) {
      if (error instanceof UserError) return this.show(visit, error.message);
      throw error;
    }
    if (account === null) return gone();
    await admit(this.#services, visit, account, { how: BY_LINK, passkeyId: passkey.id });
    return seeOther("/");
  }
}

function tokenOf({ params }: Visit): string {
  return params["token"] ?? "";
}

function gone(): Response {
  return page(<LinkGonePage />, 410);
}
