/** The desk's rejected requests, and why each was rejected. */
import type { VNode } from "preact";
import type { Reject } from "../../domain/activity.ts";
import { type ApiKey, keyState } from "../../domain/key.ts";
import { CopyButton, Facts, KeyLink, Pager, Past, Time } from "../ui/components.tsx";
import { rejectsHint } from "../ui/hints.ts";
import { remedies } from "./labels.ts";

export interface RejectListing {
  /** Newest first. */
  readonly rejects: readonly Reject[];
  /** The keys that they were sent with. */
  readonly keys: readonly ApiKey[];
  /** The request id of the last one, if there are older ones. */
  readonly older: string | null;
  readonly isFirst: boolean;
}

export function Rejects({
  listing: { rejects, keys, older, isFirst },
  path,
  now,
}: {
  listing: RejectListing;
  /** Returns the path of this page with more parameters. */
  path: (more: Readonly<Record<string, string>>) => string;
  now: number;
}): VNode {
  return (
    <section>
      <h2>Rejected requests</h2>
      {rejects.length === 0 ? (
        <Nothing isFirst={isFirst} />
      ) : (
        <ol class="rejects" data-seconds>
          {rejects.map((reject, index) => {
            const apiKey = keys.find(({ id }) => id === reject.key_id);
            return <RejectItem reject={reject} index={index} apiKey={apiKey} now={now} />;
          })}
        </ol>
      )}
      <Pager
        label="Pages of rejected requests"
        newest={isFirst ? null : path({})}
        older={older === null ? null : path({ before: older })}
      />
      <p class="hint">{rejectsHint}</p>
    </section>
  );
}

function Nothing({ isFirst }: { isFirst: boolean }): VNode {
  if (!isFirst) return <p class="empty">There are no older ones.</p>;
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

interface Shown {
  readonly reject: Reject;
  readonly apiKey: ApiKey | undefined;
}

function RejectItem({ reject, index, apiKey, now }: Shown & { index: number; now: number }): VNode {
  return (
    <li>
      <div>
        <Past at={reject.at} now={now} />
        {apiKey !== undefined && (
          <p>
            <KeyLink {...apiKey} /> <EndedBadge apiKey={apiKey} now={now} />
          </p>
        )}
      </div>
      <div>
        <h3>
          <span class="badge bad">{reject.status}</span> <code>{reject.error}</code>
        </h3>
        <Reasons reject={reject} apiKey={apiKey} />
        <p class="hint">{remedies[reject.error]}</p>
        <p class="request">
          Request <code id={`r${index}`}>{reject.request_id}</code> <CopyButton of={`r${index}`} />
        </p>
      </div>
    </li>
  );
}

function EndedBadge({ apiKey, now }: { apiKey: ApiKey; now: number }): VNode | null {
  const state = keyState(apiKey, now);
  if (state === "active") return null;
  return <span class={`badge ${state === "revoked" ? "bad" : "calm"}`}>{state}</span>;
}

/** Names of fields are the client's words. */
function Reasons({ reject, apiKey }: Shown): VNode | null {
  const { at, error, message, fields, moreFields } = reject;
  if (error === "unauthorized" && apiKey !== undefined) return <EndOf {...apiKey} at={at} />;
  if (fields === null) return message === null ? null : <p>{message}</p>;
  return (
    <>
      <Facts facts={Object.entries(fields)} />
      {moreFields > 0 && (
        <p>
          and {moreFields.toLocaleString("en")} more {moreFields === 1 ? "field" : "fields"}
        </p>
      )}
    </>
  );
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
