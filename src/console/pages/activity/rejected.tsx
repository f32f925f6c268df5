/** Points from where signals are missed to the reasons. */
import type { VNode } from "preact";
import { lastDayFrom } from "../keys/key-list.ts";
import { sumOf } from "../../ui/sparkline.tsx";
import { plural } from "../../../lib/text/words.ts";
import type { ConsoleServices } from "../../server/services.ts";
import type { MemberVisit } from "../../server/visit.ts";

/** How many of the desk's requests were rejected in the last 24 hours. */
export async function countRejected(
  { activity }: ConsoleServices,
  { member: { deskId }, now }: MemberVisit,
): Promise<number> {
  const hours = await activity.buckets({
    deskId,
    keyIds: null,
    width: "hour",
    from: lastDayFrom(now),
  });
  return sumOf(hours, "rejected");
}

export function RejectedNotice({ count }: { count: number }): VNode | null {
  if (count === 0) return null;
  return (
    <p>
      {plural(count, "request")} {count === 1 ? "was" : "were"} rejected in the last 24 hours.{" "}
      <a href="/activity#rejects">See why</a>
    </p>
  );
}
