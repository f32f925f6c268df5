/** Whether a page that keeps itself up to date does so. live.js changes it. */
import type { VNode } from "preact";
import { QuietLink } from "./components.tsx";

export function LiveStatus(): VNode {
  return (
    <>
      <noscript>
        <QuietLink to="">Refresh</QuietLink>
      </noscript>
      <div class="live" data-live="on">
        <span class="live-text">Live</span>
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
