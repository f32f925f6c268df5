/** The part of a form in which a member confirms it with the password or a passkey. */
import type { VNode } from "preact";
import { RESPONSE_FIELD } from "../sign-in/passkeys.ts";
import { QuietLink } from "../../ui/components.tsx";
import { Field } from "../../ui/forms.tsx";
import { CONFIRM_OPTIONS_PATH, type Ways } from "./confirmation.ts";

/** `id` and `label`: of the field for the password. `verb`: what the form does. */
export function Confirm({
  ways: { hasPassword, hasPasskey },
  id = "current",
  label = "Current password",
  verb,
  isDanger = false,
  back,
}: {
  ways: Ways;
  id?: string;
  label?: string;
  verb: string;
  isDanger?: boolean;
  back?: string;
}): VNode {
  const danger = isDanger ? "danger" : "";
  const password = { type: "password", autocomplete: "current-password" } as const;
  return (
    <>
      <input type="hidden" name={RESPONSE_FIELD} />
      {hasPassword ? (
        <Field id={id} name="current" label={label} {...password} required />
      ) : (
        <p class="hint">You confirm this with a passkey, which needs JavaScript.</p>
      )}
      <p class="actions">
        {hasPassword && <button class={danger}>{verb}</button>}
        {hasPasskey && (
          <button
            class={hasPassword ? `quiet ${danger}` : danger}
            data-confirm={CONFIRM_OPTIONS_PATH}
            formnovalidate
            hidden
          >
            {hasPassword ? "Confirm with a passkey" : verb}
          </button>
        )}
        {back !== undefined && <QuietLink to={back}>Cancel</QuietLink>}
      </p>
    </>
  );
}
