/** The desk's rejected requests, by reason. */
import type { VNode } from "preact";
import type { RejectedRequest, RejectReason, Rejects } from "../../domain/activity.ts";
import { type ApiKey, keyState } from "../../domain/key.ts";
import { CopyButton, KeyLink, Pager, Tag } from "../ui/components.tsx";
import { rejectsHint } from "../ui/hints.ts";
import { Past, Time } from "../ui/times.tsx";
import { describeField, remedies } from "./labels.ts";
import type { ActivityQuestion } from "./question.ts";
import { pathOf } from "./question.ts";

export interface RejectListing {
  /** The one with the latest request first. */
  readonly reasons: readonly Rejects[];
  /** The keys that they were sent with. */
  readonly keys: readonly ApiKey[];
  /** The cursor of the next page, if there are older ones. */
  readonly older: string | null;
}

interface Shown {
  readonly question: ActivityQuestion;
  readonly listing: RejectListing;
  readonly now: number;
}

export function RejectsSection(shown: Shown): VNode {
  const { question, listing } = shown;
  const { reasons, older } = listing;
  return (
    <section id="rejects" data-part="rejects">
      <h2>Rejected requests</h2>
      {reasons.length === 0 ? (
        <Nothing question={question} />
      ) : (
        <ol class="rejects">
          {reasons.map((rejects) => (
            <ReasonItem {...shown} rejects={rejects} />
          ))}
        </ol>
      )}
      <Pager
        label="Pages of rejected requests"
        newest={question.before === null ? null : pathOf({ ...question, before: null })}
        older={older === null ? null : pathOf({ ...question, before: older })}
      />
      <p class="hint">{rejectsHint}</p>
    </section>
  );
}

function Nothing({ question }: { question: ActivityQuestion }): VNode {
  const { status, field, reason, before } = question;
  if (before !== null) return <p class="empty">There are no older reasons.</p>;
  if (status !== null || field !== null || reason !== null) {
    return <p class="empty">No rejected request matches these filters.</p>;
  }
  return (
    <div class="empty">
      <h3>Nothing was rejected</h3>
      <p>
        Rejected requests appear here within seconds, with the reason for each field and what the
        bot should do.
      </p>
    </div>
  );
}

interface Item extends Shown {
  readonly rejects: Rejects;
}

function ReasonItem(item: Item): VNode {
  const { rejects, question, now } = item;
  return (
    <li data-id={rejects.id}>
      <div>
        <p>
          <strong>{rejects.count.toLocaleString("en")}</strong>
        </p>
        <Past at={rejects.lastAt} now={now} />
      </div>
      <div>
        <h3>
          <Tag tone="bad">{rejects.status}</Tag> <code>{rejects.error}</code>
        </h3>
        <Reasons {...rejects} />
        <p class="hint">{remedies[rejects.error]}</p>
        <details open={question.reason === rejects.id}>
          <summary>Latest requests</summary>
          <Requests {...item} />
        </details>
      </div>
    </li>
  );
}

/** Names of fields are the client's words. */
function Reasons({ fields, moreFields }: RejectReason): VNode | null {
  if (fields === null) return null;
  return (
    <ul>
      {Object.entries(fields).map(([name, reason]) => (
        <li>
          <code>{name}</code> {describeField(reason)}
        </li>
      ))}
      {moreFields > 0 && (
        <li>
          and {moreFields.toLocaleString("en")} more {moreFields === 1 ? "field" : "fields"}
        </li>
      )}
    </ul>
  );
}

function Requests({ rejects, question, listing: { keys }, now }: Item): VNode {
  const { id, error, count, latest } = rejects;
  return (
    <>
      {latest.map((request) => (
        <Request
          request={request}
          apiKey={keys.find((key) => key.id === request.key_id)}
          isUnauthorized={error === "unauthorized"}
          now={now}
        />
      ))}
      {question.reason === null && count > latest.length && (
        <p>
          <a href={`${pathOf({ ...question, reason: id, before: null })}#rejects`}>Show more</a>
        </p>
      )}
    </>
  );
}

function Request({
  request: { request_id, at, message },
  apiKey,
  isUnauthorized,
  now,
}: {
  request: RejectedRequest;
  apiKey: ApiKey | undefined;
  isUnauthorized: boolean;
  now: number;
}): VNode {
  const id = `r-${request_id}`;
  return (
    <div class="request">
      <Time at={at} />{" "}
      {apiKey !== undefined && (
        <>
          <KeyLink {...apiKey} /> <EndedBadge apiKey={apiKey} now={now} />
        </>
      )}
      {isUnauthorized && apiKey !== undefined ? (
        <EndOf {...apiKey} at={at} />
      ) : (
        message !== null && <p>{message}</p>
      )}
      <p>
        Request <code id={id}>{request_id}</code> <CopyButton of={id} isPlain />
      </p>
    </div>
  );
}

function EndedBadge({ apiKey, now }: { apiKey: ApiKey; now: number }): VNode | null {
  const state = keyState(apiKey, now);
  if (state === "active") return null;
  return <Tag tone={state === "revoked" ? "bad" : "calm"}>{state}</Tag>;
}

/** Why the desk's own key was refused at that time. */
function EndOf({ revoked_at, expires_at, at }: ApiKey & { at: number }): VNode {
  const wasRevoked = revoked_at !== null && revoked_at <= at;
  const hadExpired = expires_at !== null && expires_at <= at;
  const isExpiry = revoked_at === null || (hadExpired && !wasRevoked);
  return (
    <p>
      The key {isExpiry ? "expired" : "was revoked"} on{" "}
      <Time at={isExpiry ? expires_at : revoked_at} />.
    </p>
  );
}
