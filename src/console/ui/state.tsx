/** Whether all is well, at the top of a page. live.js keeps it up to date, and turns it grey when it cannot. */
import type { ComponentChildren, VNode } from "preact";
import type { MemberVisit } from "../server/visit.ts";
import type { Tone } from "./components.tsx";
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
export function PageState({
  visit: { outage, now },
  children,
}: {
  visit: MemberVisit;
  children?: ComponentChildren;
}): VNode {
  return (
    <div data-part="state" aria-live="polite">
      {outage === null ? (
        children
      ) : (
        <StateBanner
          tone="bad"
          headline={
            <span>
              Signals are not being stored since <Moment at={outage.since} now={now} />:{" "}
              {outage.reason}
            </span>
          }
        />
      )}
    </div>
  );
}
