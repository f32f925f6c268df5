/** The list of a desk's keys, and the page of one key. */
import type { VNode } from "preact";
import type { KeyActivity } from "../../domain/activity.ts";
import type { AuditRecord } from "../../domain/audit.ts";
import { type ApiKey, type KeyState, keyState } from "../../domain/key.ts";
import { AuditPhrase } from "../audit/page.tsx";
import { ButtonLink, type Fact, Facts, None, Pager, QuietLink, Tag } from "../ui/components.tsx";
import { Layout } from "../ui/layout.tsx";
import { Row, Table } from "../ui/table.tsx";
import { Past, PastOrFuture } from "../ui/times.tsx";
import { timeAgo, unbroken } from "../ui/words.ts";
import type { MemberVisit } from "../web/visit.ts";
import { describeLateUse, lastUse, lateUseOf, overlapAdvice, requests } from "./key-activity.ts";
import type { KeyListing } from "./key-list.ts";

const badges: Record<KeyState, "good" | "bad" | "calm"> = {
  active: "good",
  expired: "calm",
  revoked: "bad",
  archived: "calm",
};

const columns = ["Key", "State", "Last used", "Last day", "Created", "Expires"];

export function KeyListPage({
  visit,
  listing: { keys, creators, activities, older, newest, ended },
}: {
  visit: MemberVisit;
  listing: KeyListing;
}): VNode {
  const { now } = visit;
  if (keys.length === 0 && newest === null && ended === null) return <NoKeyPage visit={visit} />;
  return (
    <Layout
      title="Keys"
      visit={visit}
      place="/keys"
      actions={<ButtonLink to="/keys/new">Create a key</ButtonLink>}
    >
      <Table
        caption="The keys of your desk; last day: requests of the last 24 hours"
        columns={columns}
      >
        <tbody>
          {keys.map((apiKey) => {
            const { id } = apiKey;
            const about = { creator: creators.get(id), activity: activities.get(id), now };
            return <KeyRow apiKey={apiKey} {...about} />;
          })}
        </tbody>
      </Table>
      <Pager label="Pages of keys" newest={newest} older={older} />
      {ended !== null && (
        <p>
          <a href={ended}>Show all keys that have ended</a>
        </p>
      )}
    </Layout>
  );
}

function NoKeyPage({ visit }: { visit: MemberVisit }): VNode {
  return (
    <Layout title="Keys" visit={visit} place="/keys">
      <div class="empty">
        <h2>No key yet</h2>
        <p>
          A bot sends its signals with a key. Create the first one: you see it once, with a command
          that sends a signal with it.
        </p>
        <p class="actions">
          <ButtonLink to="/keys/new">Create a key</ButtonLink>
        </p>
      </div>
    </Layout>
  );
}

interface KeyDetails {
  readonly apiKey: ApiKey;
  /** The member who created it; null: an administrator. See `Audit.creatorsOf`. */
  readonly creator: string | null | undefined;
  /** In the last 24 hours. */
  readonly activity: KeyActivity | undefined;
  readonly now: number;
}

function KeyRow(details: KeyDetails): VNode {
  const { apiKey, now } = details;
  const { id, label, last4, last_used_at, expires_at } = apiKey;
  const cells = [
    <>
      {label === null ? <None>no label</None> : <bdi>{label}</bdi>}{" "}
      <span class="mono soft">…{last4}</span>
    </>,
    <State {...details} />,
    <Past at={last_used_at} now={now} />,
    <LastDay {...details} />,
    <Created {...details} />,
    <PastOrFuture at={expires_at} now={now} />,
  ];
  return <Row columns={columns} cells={cells} to={`/keys/${id}`} isNamed />;
}

function State({ apiKey, activity, now }: KeyDetails): VNode {
  const state = keyState(apiKey, now);
  const late = lateUseOf(apiKey, activity, now);
  return (
    <>
      <Tag tone={badges[state]}>{state}</Tag>
      {late !== null && (
        <>
          {" "}
          <Tag tone="bad" isLoud title={describeLateUse(late, now)}>
            still in use
          </Tag>{" "}
          <span class="soft">({timeAgo(late.lastAt, now)})</span>
        </>
      )}
    </>
  );
}

function LastDay({ apiKey: { id }, activity }: KeyDetails): VNode {
  if (activity === undefined || activity.requests === 0) return <None />;
  const rejected = unbroken(`${activity.rejected.toLocaleString("en")} rejected`);
  return (
    <>
      {unbroken(requests(activity.requests))}
      {activity.rejected > 0 && (
        <>
          , <a href={`/activity?key=${id}`}>{rejected}</a>
        </>
      )}
    </>
  );
}

function Created({ apiKey, creator, now }: KeyDetails): VNode {
  return (
    <>
      <Past at={apiKey.created_at} now={now} />{" "}
      {creator !== undefined && <span>by {creator ?? "an administrator"}</span>}
    </>
  );
}

export function KeyPage({
  visit,
  records,
  ...shown
}: Omit<KeyDetails, "now"> & {
  visit: MemberVisit;
  /** The newest entries of the audit about it. */
  records: readonly AuditRecord[];
}): VNode {
  const { now } = visit;
  const { apiKey } = shown;
  const state = keyState(apiKey, now);
  const isRotated = records.some(({ action }) => action === "key.rotated");
  const path = `/keys/${apiKey.id}`;
  return (
    <Layout
      title={`Key …${apiKey.last4}`}
      visit={visit}
      place="/keys"
      up={{ path: "/keys", name: "Keys" }}
    >
      <LateUseNotice {...shown} now={now} isRotated={isRotated} />
      {isRotated && state === "active" && (
        <p class="notice">This key has a successor. {overlapAdvice("The old key", apiKey, now)}</p>
      )}
      {apiKey.revoked_at !== null && (
        <p class="notice">
          Revoked: signals sent with it are not stored. {lastUse("It", apiKey, now)}.
        </p>
      )}
      <div class="card">
        <Facts facts={factsOf({ ...shown, now })} />
      </div>
      {state !== "revoked" && (
        <p class="actions">
          {state === "active" && !isRotated && <QuietLink to={`${path}/rotate`}>Rotate</QuietLink>}
          <a class="button quiet danger" href={`${path}/revoke`}>
            Revoke
          </a>
        </p>
      )}
      {records.length > 0 && <History records={records} now={now} />}
    </Layout>
  );
}

/** After a rotation, some bot still sends the old key. */
function LateUseNotice({
  apiKey,
  activity,
  now,
  isRotated,
}: KeyDetails & { isRotated: boolean }): VNode | null {
  const late = lateUseOf(apiKey, activity, now);
  if (late === null) return null;
  return (
    <p class="problem">
      Something still sends with this key: {describeLateUse(late, now)}.{" "}
      {isRotated ? "Give it the new key." : "Give it a key that works, or stop it."}{" "}
      <a href={`/activity?key=${apiKey.id}`}>See what was rejected</a>
    </p>
  );
}

function factsOf(details: KeyDetails): Fact[] {
  const { apiKey, now } = details;
  const { id, label, last4, last_used_at, expires_at, revoked_at } = apiKey;
  const revoked: Fact = ["Revoked", <Past at={revoked_at} now={now} />];
  return [
    ["Label", label === null ? <None /> : <bdi>{label}</bdi>],
    ["Ends in", <span class="mono">…{last4}</span>],
    ["State", <State {...details} />],
    ["Last used", <Past at={last_used_at} now={now} />],
    ["Last 24 hours", <LastDay {...details} />],
    ["Created", <Created {...details} />],
    ["Expires", <PastOrFuture at={expires_at} now={now} />],
    ...(revoked_at === null ? [] : [revoked]),
    ["Id", <span class="mono">{id}</span>],
  ];
}

function History({ records, now }: { records: readonly AuditRecord[]; now: number }): VNode {
  return (
    <section>
      <h2>History</h2>
      <ul>
        {records.map((record) => (
          <li>
            <AuditPhrase record={record} />, <Past at={record.at} now={now} />
          </li>
        ))}
      </ul>
    </section>
  );
}
