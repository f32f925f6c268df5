/** Pages that keep themselves up to date, and whether all is well: live.js turns that grey when it cannot know. */
import type { ComponentChildren, VNode } from "preact";
import { QuietLink, type Tone } from "./components.tsx";
import { useVisit } from "./context.ts";
import { Moment } from "./times.tsx";

export function StateBanner({
  tone,
  headline,
  children,
}: {
  tone: Tone;
  headline: ComponentChildren;
  /** Below the headline, or a button beside it. */
  children?: ComponentChildren;
}): VNode {
  return (
    <div class={`state ${tone}`}>
      <h2>{headline}</h2>
      {children}
    </div>
  );
}

/** `children`: what the page says while signals are stored. */
export function PageState({ children }: { children?: ComponentChildren }): VNode {
  const { outage } = useVisit();
  return (
    <div data-part="state" aria-live="polite">
      {outage === null ? (
        children
      ) : (
        <StateBanner
          tone="bad"
          headline={
            <span>
              Signals are not being stored since <Moment at={outage.since} />: {outage.reason}
            </span>
          }
        />
      )}
    </div>
  );
}

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
