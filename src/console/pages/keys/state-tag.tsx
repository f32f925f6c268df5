/** How a key stands, in a word or two. */
import type { VNode } from "preact";
import { type ApiKey, type KeyLife, shownState } from "../../../domain/key/key.ts";
import { Tag, type Tone } from "../../ui/components.tsx";
import { useVisit } from "../../ui/context.ts";
import type { KeyUse } from "./key-list.ts";

const states: Record<ReturnType<typeof shownState>, { name: string; tone: Tone }> = {
  active: { name: "Active", tone: "good" },
  rotated: { name: "Rotated", tone: "info" },
  expired: { name: "Expired", tone: "calm" },
  revoked: { name: "Revoked", tone: "bad" },
  archived: { name: "Archived", tone: "calm" },
};

/** `isExpiring`: it expires soon and has no successor. */
export function StateTag({
  apiKey,
  isExpiring = false,
}: {
  apiKey: KeyLife & Pick<ApiKey, "successor_id">;
  isExpiring?: boolean;
}): VNode {
  const { name, tone } = states[shownState(apiKey, useVisit().now)];
  return isExpiring ? <Tag tone="warn">Expiring soon</Tag> : <Tag tone={tone}>{name}</Tag>;
}

/** The key has ended, and something still sends with it. */
export function StillInUseTag(): VNode {
  return (
    <Tag tone="bad" isLoud>
      Still in use
    </Tag>
  );
}

/** The state, with what else is to be known. */
export function StateTags({ apiKey, isExpiring, late }: KeyUse): VNode {
  const { scope, successor_id } = apiKey;
  return (
    <>
      <StateTag apiKey={apiKey} isExpiring={isExpiring} />{" "}
      {successor_id !== null && <a href={`/keys/${successor_id}`}>Successor</a>}{" "}
      {scope === "read" && <Tag title="It reads the desk's signals, and sends none">Read key</Tag>}{" "}
      {late !== null && <StillInUseTag />}
    </>
  );
}
