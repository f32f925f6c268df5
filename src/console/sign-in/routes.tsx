/** Signing in with a password or a passkey, and signing out. */
import { UserError } from "../../domain/errors.ts";
import { signOutFailedPage } from "../web/problems.tsx";
import { orProblem, orRefusal } from "../web/refusals.ts";
import { page, seeOther } from "../web/responses.ts";
import { localPath } from "../web/safe-redirect.ts";
import type { ConsoleServices } from "../web/services.ts";
import { publicForm, publicPage, type Route, signedInForm, type Visit } from "../web/visit.ts";
import { admit, endSession } from "./admission.ts";
import { auditFailure, checkPassword, tooMany } from "./credentials.ts";
import { joinRoutes } from "./join-routes.tsx";
import { SignInPage, type SignInState } from "./page.tsx";
import { requirePasskeys } from "./passkeys.ts";

export function signInRoutes(services: ConsoleServices): Route[] {
  return [
    publicPage("/sign-in", (visit) => {
      const next = localPath(visit.url.searchParams.get("next"));
      if (visit.member !== null) return seeOther(next);
      return signInPage(services, visit, { email: "", next, problem: null });
    }),
    publicForm("/sign-in", (visit) => sendPassword(services, visit)),
    publicForm("/sign-in/passkey/options", (visit) =>
      orProblem(async () => {
        requirePasskeys(services);
        return services.ceremonies.startProving(visit, "sign-in");
      }),
    ),
    publicForm("/sign-in/passkey", (visit) => sendPasskey(services, visit)),
    signedInForm("/sign-out", (visit) => signOut(services, visit), "/"),
    ...joinRoutes(services),
  ];
}

async function signOut(services: ConsoleServices, visit: Visit): Promise<Response> {
  try {
    await endSession(services, visit);
    return seeOther("/sign-in");
  } catch (error) {
    services.log.error({ err: error }, "sign-out failed");
    return signOutFailedPage();
  }
}

function sendPassword(services: ConsoleServices, visit: Visit): Promise<Response> {
  const { form } = visit;
  const [email, password] = [form.get("email") ?? "", form.get("password") ?? ""];
  const next = localPath(form.get("next"));
  return orRefusal(
    async () => {
      if (email === "" || password === "") {
        throw new UserError("Type your email address and your password.");
      }
      const how = "with a password";
      const failure = failedSignIn(how);
      const account = await checkPassword(services, visit, { email, password, failure });
      // Does not say which of the two was wrong.
      if (account === null) throw new UserError("Wrong email or password.");
      await admit(services, visit, account, { how, passkeyId: null });
      return seeOther(next);
    },
    (problem) => signInPage(services, visit, { email, next, problem }),
  );
}

/** Failures are not limited: nobody guesses a signature. */
function sendPasskey(services: ConsoleServices, visit: Visit): Promise<Response> {
  const next = localPath(visit.form.get("next"));
  const { ceremonies, failedSignIns, members, throttle } = services;
  return orRefusal(
    async () => {
      const result = await ceremonies.finishProving(visit, "sign-in");
      if (result.outcome === "right") {
        const { account, id, name } = result;
        const retryAt = throttle.beginPasskeySession(id);
        if (retryAt > visit.now) throw tooMany("sign-ins", services, visit, retryAt);
        const how = `with the passkey "${name}"`;
        await admit(services, visit, account, { how, passkeyId: id });
        return seeOther(next);
      }
      failedSignIns.count("refused_passkey", visit.address);
      const owner = result.outcome === "refused" ? await members.find(result.memberId) : null;
      if (result.outcome === "refused" && owner !== null) {
        await auditFailure(services, visit, owner, failedSignIn(result.reason));
      }
      throw new UserError(
        "The passkey is unknown, or it took too long. Try again, or use your password.",
      );
    },
    (problem) => signInPage(services, visit, { email: "", next, problem }),
  );
}

function signInPage({ ceremonies }: ConsoleServices, visit: Visit, state: SignInState): Response {
  return page(
    <SignInPage visit={visit} state={state} hasPasskeys={ceremonies.isPossible} />,
    state.problem === null ? 200 : 422,
  );
}

function failedSignIn(detail: string) {
  return { actor: null, action: "member.sign_in_failed", detail } as const;
}
