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
import { counted } from "../../ui/words.ts";

export interface Attention {
  /** The most frequent reasons for rejects of the last day. */
  readonly reasons: readonly Rejects[];
  readonly expiring: readonly ApiKey[];
  /** Rotated keys that are still used. */
  readonly rotated: readonly ApiKey[];
  /** Ended keys that something still sends with. */
  readonly stillInUse: readonly KeyUse[];
  readonly now: number;
}

const reasonColumns: readonly Column[] = [
  { name: "Reason", phone: "main" },
  { name: "Latest", phone: "more" },
  { name: "Requests", phone: "more end", isNumber: true, isLabelled: true },
];

export function RejectReasons({ reasons, now }: Attention): VNode {
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
        cells={(rejects) => [
          <Reason {...rejects} />,
          <Past at={rejects.lastAt} now={now} />,
          rejects.count.toLocaleString("en"),
        ]}
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

const keyColumns: readonly Column[] = [
  { name: "Key", phone: "main" },
  { name: "State", phone: "main end" },
  { name: "Why", phone: "more" },
];

export function KeysToSee({ expiring, rotated, stillInUse, now }: Attention): VNode {
  const reminders: Reminder[] = [
    ...stillInUse.map((use) => ({
      apiKey: use.apiKey,
      tag: <StillInUseTag />,
      why: <UseInBrief {...use} />,
    })),
    ...rotated.map((apiKey) => ({
      apiKey,
      tag: <StateTag apiKey={apiKey} now={now} />,
      why: (
        <>
          Still used: the latest request was <PastMinute at={apiKey.last_used_at} now={now} />, and
          it ends <PastOrFuture at={apiKey.expires_at} now={now} />
        </>
      ),
    })),
    ...expiring.map((apiKey) => ({
      apiKey,
      tag: <StateTag apiKey={apiKey} isExpiring now={now} />,
      why: (
        <>
          Expires <PastOrFuture at={apiKey.expires_at} now={now} />, without a successor
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
        cells={({ apiKey, tag, why }) => [<KeyName {...apiKey} isShort />, tag, why]}
        to={({ apiKey }) => `/keys/${apiKey.id}`}
        isNamed
        empty={
          <p class="soft">{`None: no key expires within ${EXPIRING_SOON_DAYS} days, and no key that has ended or was rotated is still in use.`}</p>
        }
      />
    </>
  );
}

function UseInBrief({ activity, now }: KeyUse): VNode {
  return (
    <>
      {counted(activity?.unauthorized ?? 0, "request")} refused in the last 24 hours, the latest{" "}
      <Past at={activity?.lastAt ?? null} now={now} />
    </>
  );
}
