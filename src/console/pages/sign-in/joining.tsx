/** The forms for a first password or passkey. */
import type { ComponentChildren, VNode } from "preact";
import { Problem } from "../../ui/components.tsx";
import { Buttons, Field, PostForm } from "../../ui/forms.tsx";
import { newPasswordHint } from "../../ui/hints.ts";
import type { Visit } from "../../server/visit.ts";
import { RESPONSE_FIELD } from "./passkeys.ts";

interface LinkForm {
  readonly visit: Visit;
  readonly path: string;
}

export function NewPasswordForm({ visit, path, email }: LinkForm & { email: string }): VNode {
  return (
    <PostForm visit={visit} class="card" action={path}>
      <Field id="email" label="Email address">
        <input id="email" type="text" autocomplete="username" value={email} readonly />
      </Field>
      <Field
        id="password"
        label="New password"
        hint={newPasswordHint}
        type="password"
        autocomplete="new-password"
        required
        autofocus
      />
      <Buttons verb="Set password" />
    </PostForm>
  );
}

export function NewPasskeyForm({
  visit,
  path,
  isOnlyWay,
}: LinkForm & { isOnlyWay: boolean }): VNode {
  return (
    <PasskeyCreation visit={visit} path={`${path}/passkey`} isOnlyWay={isOnlyWay}>
      <p>
        {isOnlyWay
          ? "Your desk requires a passkey: you sign in with your device's lock or a security key."
          : "Or sign in without a password, with your device's lock or a security key:"}
      </p>
      <p class="actions">
        <button class={isOnlyWay ? undefined : "quiet"}>
          {isOnlyWay ? "Create passkey" : "Use a passkey instead"}
        </button>
      </p>
    </PasskeyCreation>
  );
}

/** The options come from below `path`. `isOnlyWay`: without JavaScript nothing else can be done. */
export function PasskeyCreation({
  visit,
  path,
  isOnlyWay,
  children,
}: LinkForm & { isOnlyWay: boolean; children: ComponentChildren }): VNode {
  return (
    <>
      {isOnlyWay && (
        <noscript>
          <p class="problem">Creating a passkey needs JavaScript.</p>
        </noscript>
      )}
      <PostForm
        visit={visit}
        class="card"
        action={path}
        data-passkey="create"
        data-options={`${path}/options`}
        hidden
      >
        <input type="hidden" name={RESPONSE_FIELD} />
        {children}
      </PostForm>
    </>
  );
}

/** WebAuthn knows hosts by their names. */
export function NoPasskeysHere(): VNode {
  return (
    <Problem>
      Passkeys need a host name, and this console was opened by IP address. Ask the administrator of
      the server to name it with --console-url, such as https://console.example.com.
    </Problem>
  );
}
