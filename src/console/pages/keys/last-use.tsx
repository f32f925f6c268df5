/** When a key was last used, and whether an old one may be revoked yet. */
import type { VNode } from "preact";
import { type ApiKey, IN_USE_MS, type KeyLife, keyState } from "../../../domain/key/key.ts";
import { useVisit } from "../../ui/context.ts";
import { PastMinute } from "../../ui/times.tsx";

interface Used {
  /** Begins the sentence, such as "The old key". */
  readonly name: string;
  readonly apiKey: KeyLife & Pick<ApiKey, "last_used_at">;
}

/** A sentence without its full stop. */
export function LastUse({ name, apiKey: { last_used_at } }: Used): VNode {
  if (last_used_at === null) return <>{name} has never been used</>;
  return (
    <>
      {name} was last used <PastMinute at={last_used_at} />
    </>
  );
}

/** A sentence about a key that has a successor. */
export function OverlapAdvice(used: Used): VNode {
  return (
    <>
      <LastUse {...used} />
      {adviceOn(used.apiKey, useVisit().now)}.
    </>
  );
}

function adviceOn(apiKey: Used["apiKey"], now: number): string {
  if (keyState(apiKey, now) !== "active") return "";
  if (apiKey.last_used_at === null) return ": it is safe to revoke";
  return now - apiKey.last_used_at < IN_USE_MS
    ? ": not safe to revoke yet"
    : ": safe to revoke once everything that used it has the new key";
}
