/** Whether a page that keeps itself up to date does so. live.js shows and fills it. */
import type { VNode } from "preact";
import { QuietLink } from "./components.tsx";

export function LiveStatus(): VNode {
  return (
    <>
      <noscript>
        <QuietLink to="">Refresh</QuietLink>
      </noscript>
      <div class="live">
        <span class="live-text" />
        <a class="live-sign-in" href="/sign-in" hidden>
          Sign in
        </a>
        <button type="button" class="quiet small" id="pause">
          Pause
        </button>
      </div>
    </>
  );
}
