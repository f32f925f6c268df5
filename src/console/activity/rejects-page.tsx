/** The desk's rejected requests, and why each was. */
import type { VNode } from "preact";
import { type Reject, REJECTS_KEPT } from "../../domain/activity.ts";
import { type ApiKey, keyState } from "../../domain/key.ts";
import { remedies } from "./remedies.ts";
import { shorten } from "../ui/shorten.ts";
import { KeyName } from "../keys/page.tsx";
import { Time } from "../ui/layout.tsx";
import { Past } from "../ui/moment.tsx";

export interface RejectListing {
  /** Newest first. */
  readonly rejects: readonly Reject[];
  /** That they were sent with. */
  readonly keys: readonly ApiKey[];
  /** The last one's, where there are more behind it. */
  readonly older: string | null;
  readonly isFirst: boolean;
}

interface Shown {
  readonly keys: readonly ApiKey[];
  readonly now: number;
}

export function Rejects({
  listing: { rejects, keys, older, isFirst },
  path,
  now,
}: {
  listing: RejectListing;
  /** Of this page, with more parameters. */
  path: (more: Readonly<Record<string, string>>) => string;
  now: number;
}): VNode {
  return (
    <section>
      <h2>Rejected requests</h2>
      {rejects.length === 0 ? (
        <Nothing isFirst={isFirst} />
      ) : (
        <ol class="rejects">
          {rejects.map((reject, index) => (
            <RejectItem reject={reject} index={index} keys={keys} now={now} />
          ))}
        </ol>
      )}
      {(!isFirst || older !== null) && (
        <nav class="actions" aria-label="Pages of rejected requests">
          {!isFirst && (
            <a class="button quiet" href={path({})}>
              Newest
            </a>
          )}
          {older !== null && (
            <a class="button quiet" href={path({ before: older })} rel="next">
              Older
            </a>
          )}
        </nav>
      )}
      <p class="hint">
        The newest {REJECTS_KEPT.toLocaleString("en")} of your desk are kept. A request without a
        key, or with an unknown one, belongs to nobody and is shown to nobody: a bot that gets 401
        and is not in this list has a key that never was one of yours.
      </p>
    </section>
  );
}

function Nothing({ isFirst }: { isFirst: boolean }): VNode {
  if (!isFirst) return <p class="empty">There are no older ones.</p>;
  return (
    <div class="empty">
      <h3>Nothing was rejected</h3>
      <p>
        When a request is, it stands here within seconds, with the reason for each field and what
        the bot should do.
      </p>
    </div>
  );
}

function RejectItem({
  reject,
  index,
  keys,
  now,
}: Shown & { reject: Reject; index: number }): VNode {
  const key = keys.find(({ id }) => id === reject.key_id);
  return (
    <li>
      <div>
        <Past at={reject.at} now={now} />
        {key !== undefined && <KeyOf apiKey={key} now={now} />}
      </div>
      <div>
        <h3>
          <span class="badge bad">{reject.status}</span> <code>{reject.error}</code>
        </h3>
        <Reasons reject={reject} apiKey={key} />
        <p class="hint">{remedies[reject.error]}</p>
        <p class="request">
          Request <code id={`r${index}`}>{reject.request_id}</code>{" "}
          <button type="button" class="quiet" data-copy={`#r${index}`}>
            Copy
          </button>
        </p>
      </div>
    </li>
  );
}

function KeyOf({ apiKey, now }: { apiKey: ApiKey; now: number }): VNode {
  const { label } = apiKey;
  const state = keyState(apiKey, now);
  return (
    <p>
      <a href={`/keys/${apiKey.id}`}>
        <KeyName label={label === null ? null : shorten(label)} last4={apiKey.last4} />
      </a>
      {state !== "active" && (
        <>
          {" "}
          <span class={`badge ${state === "revoked" ? "bad" : "calm"}`}>{state}</span>
        </>
      )}
    </p>
  );
}

/** Names of fields are the client's words. */
function Reasons({
  reject: { at, error, message, fields, moreFields },
  apiKey,
}: {
  reject: Reject;
  apiKey: ApiKey | undefined;
}): VNode | null {
  if (error === "unauthorized" && apiKey !== undefined) return <EndOf {...apiKey} at={at} />;
  if (fields === null) return message === null ? null : <p>{message}</p>;
  return (
    <>
      <dl>
        {Object.entries(fields).map(([name, reason]) => (
          <>
            <dt>{name}</dt>
            <dd>{reason}</dd>
          </>
        ))}
      </dl>
      {moreFields > 0 && (
        <p>
          and {moreFields.toLocaleString("en")} more {moreFields === 1 ? "field" : "fields"}
        </p>
      )}
    </>
  );
}

/** Why a key of the desk was refused at that moment. */
function EndOf({ revoked_at, expires_at, at }: ApiKey & { at: number }): VNode {
  const wasRevoked = revoked_at !== null && revoked_at <= at;
  const hadExpired = expires_at !== null && expires_at <= at;
  return revoked_at === null || (hadExpired && !wasRevoked) ? (
    <p>
      The key expired on <Time at={expires_at} />.
    </p>
  ) : (
    <p>
      The key was revoked on <Time at={revoked_at} />.
    </p>
  );
}
