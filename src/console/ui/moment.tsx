/** A moment, and how far it is from now. */
import type { VNode } from "preact";
import { relativeTime, timeAgo } from "./relative.ts";
import { Time } from "./layout.tsx";

export interface MomentProps {
  /** Epoch milliseconds; null: "never". */
  readonly at: number | null;
  readonly now: number;
}

/** Of something that has happened. */
export function Past({ at, now }: MomentProps): VNode {
  return <Both at={at} words={at === null ? null : timeAgo(at, now)} />;
}

/** Of something that will happen, or has. */
export function Moment({ at, now }: MomentProps): VNode {
  return <Both at={at} words={at === null ? null : relativeTime(at, now)} />;
}

/** The words stay on one line. */
function Both({ at, words }: { at: number | null; words: string | null }): VNode {
  return (
    <>
      <Time at={at} />
      {words !== null && <span class="soft"> ({words.replaceAll(" ", "\u00a0")})</span>}
    </>
  );
}
