/** Pages that keep themselves up to date. */
import type { ComponentChildren, VNode } from "preact";
import { QuietLink } from "./components.tsx";

/** Shows whether live updates work. live.js fills it in. */
export function LiveStatus(): VNode {
  return (
    <>
      <noscript>
        <QuietLink to="">Refresh</QuietLink>
      </noscript>
      <div class="live">
        <span class="live-text" />
        <button type="button" class="quiet small" id="pause">
          Pause
        </button>
      </div>
    </>
  );
}

/** live.js asks for the page again, and replaces each `data-part`. `path`: of what it asks for instead. */
export function LiveParts({
  everyMs,
  path,
  children,
}: {
  everyMs: number;
  path?: string;
  children: ComponentChildren;
}): VNode {
  return (
    <div id="live" data-every={everyMs} data-path={path}>
      {children}
    </div>
  );
}
