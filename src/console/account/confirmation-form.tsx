/** The part of a form in which a member confirms it by the password or a passkey. */
import type { VNode } from "preact";
import { CONFIRM_OPTIONS_PATH, type Ways } from "./confirmation.ts";
import { RESPONSE_FIELD } from "../sign-in/passkeys.ts";

/** `id`: of the field for the password. `verb`: what the form does. */
export function Confirm({
  ways: { hasPassword, hasPasskey },
  id = "current",
  verb,
  isDanger = false,
  back,
}: {
  ways: Ways;
  id?: string;
  verb: string;
  isDanger?: boolean;
  back?: string;
}): VNode {
  const danger = isDanger ? "danger" : "";
  return (
    <>
      <input type="hidden" name={RESPONSE_FIELD} />
      {hasPassword ? (
        <div class="field">
          <label for={id}>Current password</label>
          <input id={id} name="current" type="password" autocomplete="current-password" required />
        </div>
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
        {back !== undefined && (
          <a class="button quiet" href={back}>
            Cancel
          </a>
        )}
      </p>
    </>
  );
}
