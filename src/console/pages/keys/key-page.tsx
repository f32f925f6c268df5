/** The page of one key. */
import type { VNode } from "preact";
import type { AuditRecord } from "../../../domain/audit/audit.ts";
import { type ApiKey, keyState, shownState } from "../../../domain/key/key.ts";
import { AuditPhrase } from "../audit/phrase.tsx";
import { type Fact, Facts, None, Problem, QuietLink } from "../../ui/components.tsx";
import { Field, PostForm } from "../../ui/forms.tsx";
import { keyLabelHint } from "../../ui/hints.ts";
import { Layout } from "../../ui/layout.tsx";
import { Chart } from "../../ui/chart.tsx";
import { Past, PastMinute, PastOrFuture } from "../../ui/times.tsx";
import { counted, inTitle, shorten } from "../../ui/words.ts";
import type { MemberVisit } from "../../server/visit.ts";
import { describeLateUse, lateUseOf } from "./key-activity.ts";
import { LastUse, OverlapAdvice } from "./last-use.tsx";
import { CHART, type KeyUse } from "./key-list.ts";
import { ReadTag, StateTag, StillInUseTag, SuccessorLink } from "./state-tag.tsx";

interface KeyDetails extends KeyUse {
  /** The member who created it; null: an administrator. See `Audit.creatorsOf`. */
  readonly creator: string | null | undefined;
  /** The newest entries of the audit about it. */
  readonly records: readonly AuditRecord[];
}

export function KeyPage({
  visit,
  details,
  problem,
}: {
  visit: MemberVisit;
  details: KeyDetails;
  /** Why its new label is refused; null: none was typed. */
  problem: string | null;
}): VNode {
  const { apiKey, records, now } = details;
  return (
    <Layout
      title={titleOf(apiKey)}
      heading={<KeyTitle {...apiKey} />}
      visit={visit}
      up={{ path: "/keys", name: "Keys" }}
      actions={<Actions {...details} />}
    >
      <Notices {...details} />
      <div class="columns">
        <div>
          <section>
            <h2>Requests per day</h2>
            <Chart
              {...CHART}
              now={now}
              buckets={details.days}
              label={`Requests per day of the last ${CHART.count} days`}
            />
          </section>
          <section>
            <h2>Details</h2>
            <Facts facts={factsOf(details)} />
          </section>
          <Rename visit={visit} apiKey={apiKey} problem={problem} />
        </div>
        {records.length > 0 && <History records={records} now={now} />}
      </div>
    </Layout>
  );
}

export function KeyTitle({ label, last4 }: Pick<ApiKey, "label" | "last4">): VNode {
  return (
    <>
      {label === null ? "Key" : <bdi>{shorten(label)}</bdi>} …{last4}
    </>
  );
}

function titleOf({ label, last4 }: Pick<ApiKey, "label" | "last4">): string {
  return label === null ? `Key …${last4}` : `${inTitle(label)} …${last4}`;
}

function Actions({ apiKey, now }: KeyDetails): VNode | null {
  const state = keyState(apiKey, now);
  const path = `/keys/${apiKey.id}`;
  if (state === "revoked") return null;
  return (
    <>
      {state === "active" && apiKey.successor_id === null && (
        <QuietLink to={`${path}/rotate`}>Rotate</QuietLink>
      )}
      <a class="button quiet danger" href={`${path}/revoke`}>
        Revoke
      </a>
    </>
  );
}

function Notices(details: KeyDetails): VNode {
  const { apiKey, isExpiring, now } = details;
  return (
    <>
      <LateUseNotice {...details} />
      {isExpiring && (
        <p class="notice warn">
          This key expires <PastOrFuture at={apiKey.expires_at} now={now} />. Rotate it: then both
          work until the bot has changed over.
        </p>
      )}
      {shownState(apiKey, now) === "rotated" && (
        <p class="notice">
          This key has <a href={`/keys/${apiKey.successor_id}`}>a successor</a>.{" "}
          <OverlapAdvice name="The old key" apiKey={apiKey} now={now} />
        </p>
      )}
      {apiKey.revoked_at !== null && (
        <p class="notice">
          Revoked:{" "}
          {apiKey.scope === "read"
            ? "it reads no signals."
            : "signals sent with it are not stored."}{" "}
          <LastUse name="It" apiKey={apiKey} now={now} />.
        </p>
      )}
    </>
  );
}

/** After a rotation, some bot still sends the old key. */
function LateUseNotice({ apiKey, activity, now }: KeyDetails): VNode | null {
  const late = lateUseOf(apiKey, activity, now);
  if (late === null) return null;
  return (
    <p class="problem">
      Something still sends with this key: {describeLateUse(late)}, the latest{" "}
      <Past at={late.lastAt} now={now} />.{" "}
      {apiKey.successor_id === null ? (
        "Give it a key that works, or stop it."
      ) : (
        <>
          Give it <a href={`/keys/${apiKey.successor_id}`}>the new key</a>.
        </>
      )}{" "}
      <a href={`/activity?key=${apiKey.id}`}>See what was rejected</a>
    </p>
  );
}

function factsOf(details: KeyDetails): Fact[] {
  const { apiKey, isExpiring, activity, now } = details;
  const { id, label, last4, last_used_at, expires_at, revoked_at } = apiKey;
  const end: Fact =
    revoked_at === null
      ? ["Expires", <PastOrFuture at={expires_at} now={now} />]
      : ["Revoked", <Past at={revoked_at} now={now} />];
  return [
    ["Label", label === null ? <None /> : <bdi>{label}</bdi>],
    ["Ends in", <span class="mono">…{last4}</span>],
    [
      "State",
      <>
        <StateTag apiKey={apiKey} isExpiring={isExpiring} now={now} />
        <SuccessorLink {...apiKey} /> {apiKey.scope === "read" && <ReadTag />}{" "}
        {lateUseOf(apiKey, activity, now) !== null && <StillInUseTag />}
      </>,
    ],
    ...(apiKey.scope === "send"
      ? [["Signals", <a href={`/signals?key=${id}`}>Signals sent with it</a>] as const]
      : []),
    ["Last used", <PastMinute at={last_used_at} now={now} />],
    ["Last 24 hours", <LastDay {...details} />],
    ["Created", <Created {...details} />],
    end,
    ["Id", <span class="mono">{id}</span>],
  ];
}

function LastDay({ apiKey: { id }, activity }: KeyDetails): VNode {
  if (activity === undefined || activity.requests === 0) return <None />;
  return (
    <>
      {counted(activity.requests, "request")}
      {activity.rejected > 0 && (
        <>
          , <a href={`/activity?key=${id}`}>{activity.rejected.toLocaleString("en")} rejected</a>
        </>
      )}
    </>
  );
}

function Created({ apiKey, creator, now }: KeyDetails): VNode {
  return (
    <>
      <Past at={apiKey.created_at} now={now} />
      {creator !== undefined && <> by {creator ?? "an administrator"}</>}
    </>
  );
}

function Rename({
  visit,
  apiKey: { id, label },
  problem,
}: {
  visit: MemberVisit;
  apiKey: ApiKey;
  problem: string | null;
}): VNode {
  return (
    <details open={problem !== null || visit.form.has("label")} id="rename">
      <summary>Rename this key</summary>
      <Problem>{problem}</Problem>
      <PostForm visit={visit} action={`/keys/${id}`}>
        <Field
          id="label"
          label="Label"
          hint={keyLabelHint}
          value={visit.form.get("label") ?? label ?? ""}
          required
          autocomplete="off"
          dir="auto"
          aria-invalid={problem !== null || undefined}
        />
        <p class="actions">
          <button class="quiet">Rename</button>
        </p>
      </PostForm>
    </details>
  );
}

function History({ records, now }: { records: readonly AuditRecord[]; now: number }): VNode {
  return (
    <section>
      <h2>History</h2>
      <ol class="timeline">
        {records.map((record) => (
          <li>
            <p>
              <AuditPhrase record={record} />
            </p>
            <p class="hint">
              <Past at={record.at} now={now} />
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}
