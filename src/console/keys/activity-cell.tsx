/** What a key was used for in the last 24 hours, as the pages of keys say it. */
import type { VNode } from "preact";
import type { KeyActivity } from "../../domain/activity.ts";
import { describeKnocks, type Knocks, requests } from "./key-activity.ts";
import { timeAgo } from "../ui/relative.ts";

export function LastDay({
  keyId,
  activity,
}: {
  keyId: string;
  activity: KeyActivity | undefined;
}): VNode {
  if (activity === undefined || activity.requests === 0) return <span class="none">none</span>;
  return (
    <>
      {unbroken(requests(activity.requests))}
      {activity.rejected > 0 && (
        <>
          ,{" "}
          <a href={activityPath(keyId)}>
            {unbroken(`${activity.rejected.toLocaleString("en")} rejected`)}
          </a>
        </>
      )}
    </>
  );
}

/** Beside the state of a key that has ended. */
export function KnockBadge({ knocks, now }: { knocks: Knocks; now: number }): VNode {
  return (
    <>
      <span class="badge loud" title={describeKnocks(knocks, now)}>
        still in use
      </span>{" "}
      <span class="soft">({timeAgo(knocks.lastAt, now)})</span>
    </>
  );
}

/** `hasSuccessor`: what sends was forgotten when the key was rotated. */
export function KnockNotice({
  keyId,
  knocks,
  hasSuccessor,
  now,
}: {
  keyId: string;
  knocks: Knocks;
  hasSuccessor: boolean;
  now: number;
}): VNode {
  return (
    <p class="problem">
      Something still sends with this key: {describeKnocks(knocks, now)}.{" "}
      {hasSuccessor ? "Give it the new key." : "Give it a key that works, or stop it."}{" "}
      <a href={activityPath(keyId)}>See what was rejected</a>
    </p>
  );
}

/** Stays on one line. */
function unbroken(text: string): string {
  return text.replaceAll(" ", "\u00a0");
}

function activityPath(keyId: string): string {
  return `/activity?key=${keyId}`;
}
