/** What there is to see of keys. */
import type { VNode } from "preact";
import type { KeyActivity } from "../../domain/activity.ts";
import type { AuditRecord } from "../../domain/audit.ts";
import { type ApiKey, type KeyState, keyState } from "../../domain/key.ts";
import { knocksOf } from "./key-activity.ts";
import type { KeyListing } from "./key-list.ts";
import { lastUse, overlapAdvice } from "./last-use.ts";
import type { MemberVisit } from "../web/visit.ts";
import { AuditPhrase } from "../audit/page.tsx";
import { KnockBadge, KnockNotice, LastDay } from "./activity-cell.tsx";
import { Layout } from "../ui/layout.tsx";
import { Moment, Past } from "../ui/moment.tsx";

const badges: Record<KeyState, "good" | "bad" | "calm"> = {
  active: "good",
  expired: "calm",
  revoked: "bad",
};

/** A label is text of any script and direction: it stays apart from what stands beside it. */
export function KeyName({ label, last4 }: Pick<ApiKey, "label" | "last4">): VNode {
  return (
    <>
      {label !== null && (
        <>
          <bdi>{label}</bdi>{" "}
        </>
      )}
      <span class="mono">…{last4}</span>
    </>
  );
}

export function KeyListPage({
  visit,
  listing,
}: {
  visit: MemberVisit;
  listing: KeyListing;
}): VNode {
  const isNone = listing.keys.length === 0 && listing.newest === null && listing.ended === null;
  return (
    <Layout title="Keys" member={visit.member} csrfToken={visit.csrfToken} place="/keys">
      {isNone ? (
        <Empty />
      ) : (
        <>
          <p class="actions">
            <a class="button" href="/keys/new">
              Create a key
            </a>
          </p>
          <KeyTable listing={listing} now={visit.now} />
          <Ways listing={listing} />
        </>
      )}
    </Layout>
  );
}

function Ways({ listing: { older, newest, ended } }: { listing: KeyListing }): VNode {
  return (
    <>
      {(older !== null || newest !== null) && (
        <nav class="actions" aria-label="Pages of keys">
          {newest !== null && (
            <a class="button quiet" href={newest}>
              Newest
            </a>
          )}
          {older !== null && (
            <a class="button quiet" href={older} rel="next">
              Older
            </a>
          )}
        </nav>
      )}
      {ended !== null && (
        <p>
          <a href={ended}>Show all keys that have ended</a>
        </p>
      )}
    </>
  );
}

function Empty(): VNode {
  return (
    <div class="empty">
      <h2>No key yet</h2>
      <p>
        A bot sends its signals with a key. Create the first one: you see it once, with a command
        that sends a signal with it.
      </p>
      <p class="actions">
        <a class="button" href="/keys/new">
          Create a key
        </a>
      </p>
    </div>
  );
}

function KeyTable({
  listing: { keys, creators, activities },
  now,
}: {
  listing: KeyListing;
  now: number;
}): VNode {
  return (
    <div class="scroll">
      <table>
        <caption>The keys of your desk; last day: requests of the last 24 hours</caption>
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">State</th>
            <th scope="col">Last used</th>
            <th scope="col" title="Requests of the last 24 hours">
              Last day
            </th>
            <th scope="col">Created</th>
            <th scope="col">Expires</th>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr>
              <th scope="row">
                <a href={`/keys/${key.id}`}>
                  {key.label === null ? <span class="none">no label</span> : <bdi>{key.label}</bdi>}
                </a>{" "}
                <span class="mono soft">…{key.last4}</span>
              </th>
              <td data-label="State">
                <State apiKey={key} activity={activities.get(key.id)} now={now} />
              </td>
              <td data-label="Last used">
                <Past at={key.last_used_at} now={now} />
              </td>
              <td data-label="Last day">
                <LastDay keyId={key.id} activity={activities.get(key.id)} />
              </td>
              <td data-label="Created">
                <Past at={key.created_at} now={now} /> <By creator={creators.get(key.id)} />
              </td>
              <td data-label="Expires">
                <Moment at={key.expires_at} now={now} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function State({
  apiKey,
  activity,
  now,
}: {
  apiKey: ApiKey;
  activity: KeyActivity | undefined;
  now: number;
}): VNode {
  const state = keyState(apiKey, now);
  const knocks = knocksOf(apiKey, activity, now);
  return (
    <>
      <span class={`badge ${badges[state]}`}>{state}</span>
      {knocks !== null && (
        <>
          {" "}
          <KnockBadge knocks={knocks} now={now} />
        </>
      )}
    </>
  );
}

/** Says who created the key; null: an administrator. */
function By({ creator }: { creator: string | null | undefined }): VNode | null {
  if (creator === undefined) return null;
  return <span>by {creator ?? "an administrator"}</span>;
}

function hasSuccessor(records: readonly AuditRecord[]): boolean {
  return records.some(({ action }) => action === "key.rotated");
}

export function KeyPage({
  visit,
  apiKey,
  creator,
  records,
  activity,
}: {
  visit: MemberVisit;
  apiKey: ApiKey;
  /** See `Audit.creatorsOf`. */
  creator: string | null | undefined;
  /** The newest entries of the audit about it. */
  records: readonly AuditRecord[];
  /** Of the last 24 hours. */
  activity: KeyActivity | undefined;
}): VNode {
  const { now } = visit;
  const state = keyState(apiKey, now);
  const isRotated = hasSuccessor(records);
  const knocks = knocksOf(apiKey, activity, now);
  const path = `/keys/${apiKey.id}`;
  const title = `Key …${apiKey.last4}`;
  return (
    <Layout title={title} member={visit.member} csrfToken={visit.csrfToken} place="/keys">
      {knocks !== null && (
        <KnockNotice keyId={apiKey.id} knocks={knocks} hasSuccessor={isRotated} now={now} />
      )}
      {isRotated && state === "active" && (
        <p class="notice">This key has a successor. {overlapAdvice("The old key", apiKey, now)}</p>
      )}
      {apiKey.revoked_at !== null && (
        <p class="notice">
          Revoked: no signal that is sent with it is stored. {lastUse("It", apiKey, now)}.
        </p>
      )}
      <KeyFacts apiKey={apiKey} creator={creator} activity={activity} now={now} />
      {state !== "revoked" && (
        <p class="actions">
          {state === "active" && !isRotated && (
            <a class="button quiet" href={`${path}/rotate`}>
              Rotate
            </a>
          )}
          <a class="button quiet danger" href={`${path}/revoke`}>
            Revoke
          </a>
        </p>
      )}
      <History records={records} now={now} />
    </Layout>
  );
}

function KeyFacts({
  apiKey,
  creator,
  activity,
  now,
}: {
  apiKey: ApiKey;
  creator: string | null | undefined;
  activity: KeyActivity | undefined;
  now: number;
}): VNode {
  const { label } = apiKey;
  return (
    <div class="card">
      <dl>
        <dt>Label</dt>
        <dd>{label === null ? <span class="none">none</span> : <bdi>{label}</bdi>}</dd>
        <dt>Ends in</dt>
        <dd class="mono">…{apiKey.last4}</dd>
        <dt>State</dt>
        <dd>
          <State apiKey={apiKey} activity={activity} now={now} />
        </dd>
        <dt>Last used</dt>
        <dd>
          <Past at={apiKey.last_used_at} now={now} />
        </dd>
        <dt>Last 24 hours</dt>
        <dd>
          <LastDay keyId={apiKey.id} activity={activity} />
        </dd>
        <dt>Created</dt>
        <dd>
          <Past at={apiKey.created_at} now={now} /> <By creator={creator} />
        </dd>
        <dt>Expires</dt>
        <dd>
          <Moment at={apiKey.expires_at} now={now} />
        </dd>
        {apiKey.revoked_at !== null && (
          <>
            <dt>Revoked</dt>
            <dd>
              <Past at={apiKey.revoked_at} now={now} />
            </dd>
          </>
        )}
        <dt>Id</dt>
        <dd class="mono">{apiKey.id}</dd>
      </dl>
    </div>
  );
}

function History({ records, now }: { records: readonly AuditRecord[]; now: number }): VNode | null {
  if (records.length === 0) return null;
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
