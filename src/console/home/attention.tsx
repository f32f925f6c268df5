/** What needs attention on the home page: rejected requests, and keys. */
import type { ComponentChildren, VNode } from "preact";
import type { Rejects } from "../../domain/activity.ts";
import { type ApiKey, EXPIRING_SOON_DAYS } from "../../domain/key.ts";
import { ReasonInBrief, StatusTag } from "../activity/rejects-list.tsx";
import type { KeyUse } from "../keys/key-list.ts";
import { StateTag, StillInUseTag } from "../keys/state-tag.tsx";
import { KeyName } from "../ui/components.tsx";
import { type Column, Row, Table } from "../ui/table.tsx";
import { Past, PastOrFuture } from "../ui/times.tsx";
import { counted } from "../ui/words.ts";

export interface Attention {
  /** The most frequent reasons for rejects of the last day. */
  readonly reasons: readonly Rejects[];
  readonly expiring: readonly ApiKey[];
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
      {reasons.length === 0 ? (
        <p class="soft">Nothing was rejected.</p>
      ) : (
        <Table
          caption="Reasons for rejected requests, the most frequent first"
          columns={reasonColumns}
        >
          <tbody>
            {reasons.map((rejects) => (
              <Row
                columns={reasonColumns}
                cells={[
                  <>
                    <StatusTag {...rejects} /> <ReasonInBrief {...rejects} />
                  </>,
                  <Past at={rejects.lastAt} now={now} />,
                  rejects.count.toLocaleString("en"),
                ]}
                to={`/activity/rejects/${rejects.id}`}
              />
            ))}
          </tbody>
        </Table>
      )}
    </>
  );
}

const keyColumns: readonly Column[] = [
  { name: "Key", phone: "main" },
  { name: "State", phone: "main end" },
  { name: "Why", phone: "more" },
];

export function KeysToSee({ expiring, stillInUse, now }: Attention): VNode {
  return (
    <>
      <div class="section-head">
        <h2>Keys that need attention</h2>
        <a href="/keys">All keys</a>
      </div>
      {expiring.length + stillInUse.length === 0 ? (
        <p class="soft">{`None: no key expires within ${EXPIRING_SOON_DAYS} days, and no ended key is still in use.`}</p>
      ) : (
        <Table caption="Keys that need attention" columns={keyColumns}>
          <tbody>
            {stillInUse.map((use) => (
              <KeyRow apiKey={use.apiKey} tag={<StillInUseTag />} why={<UseInBrief {...use} />} />
            ))}
            {expiring.map((apiKey) => (
              <KeyRow
                apiKey={apiKey}
                tag={<StateTag apiKey={apiKey} isExpiring now={now} />}
                why={
                  <>
                    Expires <PastOrFuture at={apiKey.expires_at} now={now} />, without a successor
                  </>
                }
              />
            ))}
          </tbody>
        </Table>
      )}
    </>
  );
}

function UseInBrief({ activity, now }: KeyUse): VNode {
  return (
    <>
      {counted(activity?.unauthorized ?? 0, "request")} in the last 24 hours, the latest{" "}
      <Past at={activity?.lastAt ?? null} now={now} />
    </>
  );
}

function KeyRow({
  apiKey,
  tag,
  why,
}: {
  apiKey: ApiKey;
  tag: VNode;
  why: ComponentChildren;
}): VNode {
  const cells = [<KeyName {...apiKey} isShort />, tag, why];
  return <Row columns={keyColumns} cells={cells} to={`/keys/${apiKey.id}`} isNamed />;
}
