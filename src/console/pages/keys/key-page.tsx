/** The page of one key. */
import type { VNode } from "preact";
import type { Rejects } from "../../../domain/activity/activity.ts";
import type { AuditRecord } from "../../../domain/audit/audit.ts";
import { type ApiKey, keyState, shownState } from "../../../domain/key/key.ts";
import { AuditPhrase } from "../audit/phrase.tsx";
import { type Fact, Facts, None, Problem, QuietLink, ViewerNote } from "../../ui/components.tsx";
import { useIsManager, useVisit } from "../../ui/context.ts";
import { Field, PostForm } from "../../ui/forms.tsx";
import { keyLabelHint } from "../../ui/hints.ts";
import { Layout } from "../../ui/layout.tsx";
import { Chart } from "../../ui/chart.tsx";
import { Past, PastMinute, PastOrFuture } from "../../ui/times.tsx";
import { plural } from "../../../lib/text/words.ts";
import { inTitle, shorten } from "../../ui/words.ts";
import { LastUse, OverlapAdvice } from "./last-use.tsx";
import { scopes } from "./key-choices.ts";
import { ForeignUseNotice, LimitList } from "./limits.tsx";
import { CHART, type KeyUse } from "./key-list.ts";
import { StateTags } from "./state-tag.tsx";

interface KeyDetails extends KeyUse {
  /** The member who created it; null: an administrator. See `Audit.creatorsOf`. */
  readonly creator: string | null | undefined;
  /** The newest entries of the audit about it. */
  readonly records: readonly AuditRecord[];
  /** The requests from outside its networks; undefined: there are none. */
  readonly foreign: Rejects | undefined;
  /** Why its new label is refused; null: none was typed. */
  readonly problem: string | null;
}

export function KeyPage(details: KeyDetails): VNode {
  const { apiKey, records } = details;
  const isManager = useIsManager();
  return (
    <Layout
      title={titleOf(apiKey)}
      heading={<KeyTitle {...apiKey} />}
      up={{ path: "/keys", name: "Keys" }}
      actions={isManager && <Actions {...details} />}
    >
      <ViewerNote can="rename, rotate and revoke keys" />
      <Notices {...details} />
      <div class="columns">
        <div>
          {apiKey.scope === "send" && <RequestsPerDay {...details} />}
          <section>
            <h2>Details</h2>
            <Facts facts={factsOf(details)} />
          </section>
          {isManager && <Rename {...details} />}
        </div>
        {records.length > 0 && <History {...details} />}
      </div>
    </Layout>
  );
}

function RequestsPerDay({ days }: KeyDetails): VNode {
  return (
    <section>
      <h2>Requests per day</h2>
      <Chart {...CHART} buckets={days} label={`Requests per day of the last ${CHART.count} days`} />
    </section>
  );
}

export function KeyTitle({ label, last4 }: Pick<ApiKey, "label" | "last4">): VNode {
  return (
    <>
      {label === null ? "Key" : <bdi>{shorten(label)}</bdi>} …{last4}
    </>
  );
}

/** What revoking a key means. */
export function withoutKey({ scope }: Pick<ApiKey, "scope">): string {
  return scope === "read" ? "it reads no signals." : "signals sent with it are not stored.";
}

function titleOf({ label, last4 }: Pick<ApiKey, "label" | "last4">): string {
  return label === null ? `Key …${last4}` : `${inTitle(label)} …${last4}`;
}

function Actions({ apiKey }: KeyDetails): VNode | null {
  const state = keyState(apiKey, useVisit().now);
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
  const { apiKey, isExpiring } = details;
  return (
    <>
      <LateUseNotice {...details} />
      <ForeignUseNotice {...details} />
      {isExpiring && (
        <p class="notice warn">
          This key expires <PastOrFuture at={apiKey.expires_at} />. Rotate it: then both work until
          the bot has changed over.
        </p>
      )}
      {shownState(apiKey, useVisit().now) === "rotated" && (
        <p class="notice">
          This key has <a href={`/keys/${apiKey.successor_id}`}>a successor</a>.{" "}
          <OverlapAdvice name="The old key" apiKey={apiKey} />
        </p>
      )}
      {apiKey.revoked_at !== null && (
        <p class="notice">
          Revoked: {withoutKey(apiKey)} <LastUse name="It" apiKey={apiKey} />.
        </p>
      )}
    </>
  );
}

/** After a rotation, some bot still sends the old key. */
function LateUseNotice({ apiKey, late }: KeyDetails): VNode | null {
  if (late === null) return null;
  return (
    <p class="problem">
      Something still sends with this key: {plural(late.unauthorized, "request")} in the last 24
      hours, {late.unauthorized > 1 && "each "}answered 401 and not stored, the latest{" "}
      <Past at={late.lastAt} />.{" "}
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
  const { apiKey } = details;
  const { id, label, last4, last_used_at, expires_at, revoked_at, limits } = apiKey;
  const end: Fact =
    revoked_at === null
      ? ["Expires", <PastOrFuture at={expires_at} />]
      : ["Revoked", <Past at={revoked_at} />];
  return [
    ["Label", label === null ? <None /> : <bdi>{label}</bdi>],
    ["Ends in", <span class="mono">…{last4}</span>],
    ["State", <StateTags {...details} />],
    ["Use", scopes.find(({ value }) => value === apiKey.scope)?.name],
    ...(apiKey.scope === "send" ? factsOfSending(details) : []),
    ...(limits === null ? [] : [["Limits", <LimitList limits={limits} />] as const]),
    ["Last used", <PastMinute at={last_used_at} />],
    ["Created", <Created {...details} />],
    end,
    ["Id", <span class="mono">{id}</span>],
  ];
}

function factsOfSending(details: KeyDetails): Fact[] {
  return [
    ["Signals", <a href={`/signals?key=${details.apiKey.id}`}>Signals sent with it</a>],
    ["Last 24 hours", <LastDay {...details} />],
  ];
}

function LastDay({ apiKey: { id }, activity }: KeyDetails): VNode {
  if (activity === undefined || activity.requests === 0) return <None />;
  return (
    <>
      {plural(activity.requests, "request")}
      {activity.rejected > 0 && (
        <>
          , <a href={`/activity?key=${id}`}>{activity.rejected.toLocaleString("en")} rejected</a>
        </>
      )}
    </>
  );
}

function Created({ apiKey, creator }: KeyDetails): VNode {
  return (
    <>
      <Past at={apiKey.created_at} />
      {creator !== undefined && <> by {creator ?? "an administrator"}</>}
    </>
  );
}

function Rename({ apiKey: { id, label }, problem }: KeyDetails): VNode {
  const { form } = useVisit();
  return (
    <details open={problem !== null || form.has("label")} id="rename">
      <summary>Rename this key</summary>
      <Problem>{problem}</Problem>
      <PostForm action={`/keys/${id}`}>
        <Field
          id="label"
          label="Label"
          hint={keyLabelHint}
          value={form.get("label") ?? label ?? ""}
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

function History({ records }: KeyDetails): VNode {
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
              <Past at={record.at} />
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}
