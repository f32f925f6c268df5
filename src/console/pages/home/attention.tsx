/** What needs attention on the home page: rejected requests, and keys. */
import type { VNode } from "preact";
import type { Rejects } from "../../../domain/activity/activity.ts";
import { type ApiKey, EXPIRING_SOON_DAYS } from "../../../domain/key/key.ts";
import { Reason } from "../activity/rejects-list.tsx";
import type { KeyUse } from "../keys/key-list.ts";
import { StateTag, StillInUseTag } from "../keys/state-tag.tsx";
import { KeyName } from "../../ui/components.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Past, PastMinute, PastOrFuture } from "../../ui/times.tsx";
import { plural } from "../../../lib/text/words.ts";

export interface Attention {
  /** The most frequent reasons for rejects of the last day. */
  readonly reasons: readonly Rejects[];
  readonly expiring: readonly ApiKey[];
  /** Rotated keys that are still used. */
  readonly rotated: readonly ApiKey[];
  /** Ended keys that something still sends with. */
  readonly stillInUse: readonly KeyUse[];
}

const reasonColumns: readonly Column<Rejects>[] = [
  { name: "Reason", cell: (rejects) => <Reason {...rejects} />, phone: "main" },
  { name: "Latest", cell: ({ lastAt }) => <Past at={lastAt} />, phone: "more" },
  {
    name: "Requests",
    cell: ({ count }) => count.toLocaleString("en"),
    phone: "more end",
    isNumber: true,
    isLabelled: true,
  },
];

export function RejectReasons({ reasons }: Attention): VNode {
  return (
    <>
      <div class="section-head">
        <h2>Rejected in the last 24 hours</h2>
        {reasons.length > 0 && <a href="/activity#rejects">All reasons</a>}
      </div>
      <List
        caption="Reasons for rejected requests, the most frequent first"
        columns={reasonColumns}
        items={reasons}
        to={({ id }) => `/activity/rejects/${id}`}
        empty={<p class="soft">Nothing was rejected.</p>}
      />
    </>
  );
}

interface Reminder {
  readonly apiKey: ApiKey;
  readonly tag: VNode;
  readonly why: VNode;
}

const keyColumns: readonly Column<Reminder>[] = [
  {
    name: "Key",
    cell: ({ apiKey }) => <KeyName {...apiKey} isShort />,
    phone: "main",
    isName: true,
  },
  { name: "State", cell: ({ tag }) => tag, phone: "main end" },
  { name: "Why", cell: ({ why }) => why, phone: "more" },
];

export function KeysToSee({ expiring, rotated, stillInUse }: Attention): VNode {
  const reminders: Reminder[] = [
    ...stillInUse.map(({ apiKey, activity }) => ({
      apiKey,
      tag: <StillInUseTag />,
      why: (
        <>
          {plural(activity?.unauthorized ?? 0, "request")} refused in the last 24 hours, the latest{" "}
          <Past at={activity?.lastAt ?? null} />
        </>
      ),
    })),
    ...rotated.map((apiKey) => ({
      apiKey,
      tag: <StateTag apiKey={apiKey} />,
      why: (
        <>
          Still used: the latest request was <PastMinute at={apiKey.last_used_at} />, and it ends{" "}
          <PastOrFuture at={apiKey.expires_at} />
        </>
      ),
    })),
    ...expiring.map((apiKey) => ({
      apiKey,
      tag: <StateTag apiKey={apiKey} isExpiring />,
      why: (
        <>
          Expires <PastOrFuture at={apiKey.expires_at} />, without a successor
        </>
      ),
    })),
  ];
  return (
    <>
      <div class="section-head">
        <h2>Keys that need attention</h2>
        <a href="/keys">All keys</a>
      </div>
      <List
        caption="Keys that need attention"
        columns={keyColumns}
        items={reminders}
        to={({ apiKey }) => `/keys/${apiKey.id}`}
        empty={
          <p class="soft">{`None: no key expires within ${EXPIRING_SOON_DAYS} days, and no key that has ended or was rotated is still in use.`}</p>
        }
      />
    </>
  );
}
