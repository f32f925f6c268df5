/** How a key stands, in a word or two. */
import type { VNode } from "preact";
import { type KeyLife, type KeyState, keyState } from "../../domain/key.ts";
import { Tag, type Tone } from "../ui/components.tsx";

const states: Record<KeyState, { name: string; tone: Tone }> = {
  active: { name: "Active", tone: "good" },
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
  apiKey: KeyLife;
  isExpiring?: boolean;
  now: number;
}): VNode {
  if (isExpiring) return <Tag tone="warn">Expiring soon</Tag>;
  const { name, tone } = states[keyState(apiKey, now)];
  return <Tag tone={tone}>{name}</Tag>;
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
