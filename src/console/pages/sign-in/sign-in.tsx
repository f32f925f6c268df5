/** Signing in with a password or a passkey, and signing out. */
import type { VNode } from "preact";
import { UserError } from "../../../lib/errors.ts";
import type { PasskeyCredential } from "../../../domain/member/member.ts";
import { Problem } from "../../ui/components.tsx";
import { Buttons, Field, PasskeyForm, PostForm } from "../../ui/forms.tsx";
import { Layout } from "../../ui/layout.tsx";
import { passkeyScripts } from "../../server/assets.ts";
import { signOutFailedPage } from "../../server/problems.tsx";
import { seeOther } from "../../server/responses.ts";
import { type Answer, forEverybody, type Route, forSignedIn } from "../../server/routes.ts";
import { localPath } from "../../server/links.ts";
import type { ConsoleServices } from "../../server/services.ts";
import type { Visit } from "../../server/visit.ts";
import { admit, endSession } from "./admission.ts";
import { auditFailure, checkPassword, deskArchived, tooMany } from "./credentials.ts";
import { requirePasskeys } from "./passkeys.ts";

export const signInRoutes: readonly Route[] = [
  forEverybody.page("/sign-in", showSignIn),
  forEverybody.form("/sign-in", sendPassword, { again: showForm }),
  forEverybody.passkey("/sign-in/passkey/options", async (services, visit) => {
    requirePasskeys(services);
    return services.ceremonies.startProving(visit, "sign-in");
  }),
  forEverybody.form("/sign-in/passkey", sendPasskey, { again: showForm }),
  forSignedIn.form("/sign-out", signOut, { page: "/" }),
  // For session.js, which sees whether it is redirected.
  forSignedIn.page("/session", () => new Response(null, { status: 204 })),
];

function showSignIn(services: ConsoleServices, visit: Visit): Answer {
  return visit.member === null ? showForm(services, visit, null) : seeOther(nextOf(visit));
}

function showForm({ ceremonies }: ConsoleServices, visit: Visit, problem: string | null): VNode {
  const { isPossible: hasPasskeys } = ceremonies;
  const email = visit.form.get("email") ?? "";
  const next = <input type="hidden" name="next" value={nextOf(visit)} />;
  return (
    <Layout title="Sign in" isAlone scripts={hasPasskeys ? passkeyScripts : []}>
      <Problem>{problem}</Problem>
      <PostForm class="card" action="/sign-in">
        {next}
        <Field
          id="email"
          label="Email address"
          type="text"
          inputmode="email"
          autocomplete="username"
          autocapitalize="none"
          spellcheck={false}
          value={email}
          required
          autofocus={email === ""}
        />
        <Field
          id="password"
          label="Password"
          type="password"
          autocomplete="current-password"
          required
          autofocus={email !== ""}
        />
        <Buttons verb="Sign in" />
      </PostForm>
      {hasPasskeys && (
        <PasskeyForm use="get" action="/sign-in/passkey">
          {next}
          <p class="actions">
            <button class="quiet">Sign in with a passkey</button>
          </p>
        </PasskeyForm>
      )}
      <p class="hint">
        Not a member yet? Ask a manager of the desk to invite you. Forgot your password? Ask your
        administrator for a link.
      </p>
    </Layout>
  );
}

/** Where to go after signing in. */
function nextOf({ form, url }: Visit): string {
  return localPath(form.get("next") ?? url.searchParams.get("next"));
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

async function sendPassword(services: ConsoleServices, visit: Visit): Promise<Response> {
  const { form } = visit;
  const [email, password] = [form.get("email") ?? "", form.get("password") ?? ""];
  if (email === "" || password === "") {
    throw new UserError("Type your email address and your password.");
  }
  const how = "with a password";
  const failure = failedSignIn(how);
  const account = await checkPassword(services, visit, { email, password, failure });
  // Does not say which of the two was wrong.
  if (account === null) throw new UserError("Wrong email or password.");
  await admit(services, visit, account, { how, passkeyId: null });
  return seeOther(nextOf(visit));
}

/** Failures are not limited: nobody guesses a signature. */
async function sendPasskey(services: ConsoleServices, visit: Visit): Promise<Response> {
  const { ceremonies, failedSignIns, throttle } = services;
  const result = await ceremonies.finishProving(visit, "sign-in");
  if (result.outcome === "right" || result.outcome === "archived") {
    const { id, name } = result.passkey;
    const retryAt = await throttle.beginPasskeySession(id);
    if (retryAt > visit.now) throw tooMany("sign-ins", services, visit, retryAt);
    const how = `with the passkey "${name}"`;
    if (result.outcome === "archived") {
      throw await deskArchived(services, visit, ownerOf(result.passkey), failedSignIn(how));
    }
    await admit(services, visit, result.account, { how, passkeyId: id });
    return seeOther(nextOf(visit));
  }
  failedSignIns.count("refused_passkey", visit.address);
  if (result.outcome === "refused") {
    await auditFailure(services, visit, ownerOf(result.passkey), failedSignIn(result.reason));
  }
  throw new UserError(
    "The passkey is unknown, or it took too long. Try again, or use your password.",
  );
}

function ownerOf({ member_id: id, desk_id }: PasskeyCredential) {
  return { id, desk_id };
}

function failedSignIn(detail: string) {
  return { actor: null, action: "member.sign_in_failed", detail } as const;
}
