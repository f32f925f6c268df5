/** How a key stands, in a word or two. */
import type { VNode } from "preact";
import { type ApiKey, type KeyLife, shownState } from "../../../domain/key/key.ts";
import { Tag, type Tone } from "../../ui/components.tsx";

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
  now,
}: {
  apiKey: KeyLife & Pick<ApiKey, "successor_id">;
  isExpiring?: boolean;
  now: number;
}): VNode {
  if (isExpiring) return <Tag tone="warn">Expiring soon</Tag>;
  const { name, tone } = states[shownState(apiKey, now)];
  return <Tag tone={tone}>{name}</Tag>;
}

/** Follows the state. Nothing for a key without an active successor. */
export function SuccessorLink({ successor_id }: Pick<ApiKey, "successor_id">): VNode | null {
  if (successor_id === null) return null;
  return (
    <>
      {" "}
      <a href={`/keys/${successor_id}`}>Successor</a>
    </>
  );
}

/** The key reads signals, and sends none. */
export function ReadTag(): VNode {
  return (
    <Tag tone="calm" title="It reads the desk's signals, and sends none">
      Read key
    </Tag>
  );
}

/** The key has ended, and something still sends with it. */
export function StillInUseTag(): VNode {
  return (
    <Tag tone="bad" isLoud>
      Still in use
    </Tag>
  );
}
