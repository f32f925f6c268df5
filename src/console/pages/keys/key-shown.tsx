/** The page that shows a new key once, and the page that replaces it. */
import type { VNode } from "preact";
import type { ApiKey } from "../../../domain/key/key.ts";
import { ButtonLink, CopyButton, KeyName, QuietLink, Tag } from "../../ui/components.tsx";
import { Layout } from "../../ui/layout.tsx";
import { LiveParts, LiveStatus } from "../../ui/live.tsx";
import { Past, Time } from "../../ui/times.tsx";
import { plural } from "../../../lib/text/words.ts";
import { assets } from "../../server/assets.ts";
import { OverlapAdvice } from "./last-use.tsx";

export function KeyShownPage({
  apiKey,
  plaintext,
  replaced,
  command,
}: {
  apiKey: ApiKey;
  plaintext: string;
  /** The key that it replaces; null: none. */
  replaced: ApiKey | null;
  /** Sends a signal with the key. */
  command: string;
}): VNode {
  const isSender = apiKey.scope === "send";
  return (
    <Layout
      title="Your new key"
      actions={isSender && <LiveStatus />}
      scripts={isSender ? [assets.live.path] : []}
    >
      <section class="card">
        <h2>
          <KeyName {...apiKey} />
        </h2>
        <p>
          <strong>This key is shown only once.</strong> Copy it now, to where your{" "}
          {apiKey.scope === "read" ? "reader" : "bot"} keeps its secrets.
        </p>
        <p class="secret">
          <code id="key">{plaintext}</code>
        </p>
        <p class="actions">
          <CopyButton of="key" isMain>
            Copy the key
          </CopyButton>
          <QuietLink to={`/keys/${apiKey.id}`}>I've saved it</QuietLink>
        </p>
      </section>
      {replaced !== null && <Replaced old={replaced} />}
      {!isSender && (
        <p>
          A program reads your desk's signals with it from the feed. Your administrator knows the
          feed's address.
        </p>
      )}
      {isSender && (
        <section class="card">
          <h2>Send a signal with it</h2>
          <pre id="command" tabindex={0}>
            {command}
          </pre>
          <p class="actions">
            <CopyButton of="command">Copy the command</CopyButton>
          </p>
          <LiveParts everyMs={2_000} path={`/keys/${apiKey.id}/arrival`}>
            <Arrival apiKey={apiKey} rejected={0} />
          </LiveParts>
        </section>
      )}
    </Layout>
  );
}

/** Whether the first signal with the key has arrived. `rejected`: requests. */
export function Arrival({
  apiKey: { id, last_used_at },
  rejected,
}: {
  apiKey: ApiKey;
  rejected: number;
}): VNode {
  const isDone = last_used_at !== null;
  return (
    <p data-part="arrival" data-done={isDone ? "" : undefined} aria-live="polite">
      {isDone ? (
        <>
          <Tag tone="good">Arrived</Tag> The first signal with this key came{" "}
          <Past at={last_used_at} />. <a href={`/signals?key=${id}`}>See its signals</a>
        </>
      ) : (
        <>
          Waiting for the first signal with this key.{" "}
          {rejected > 0 && (
            <a href={`/activity?key=${id}`}>{`${plural(rejected, "request")} rejected: see why`}</a>
          )}
        </>
      )}
    </p>
  );
}

/** After a reload, too late, or in another session. */
export function ShownAlreadyPage({ apiKey }: { apiKey: ApiKey }): VNode {
  return (
    <Layout title="Key already shown">
      <p>
        <KeyName {...apiKey} />: This key was shown once and cannot be shown again.
      </p>
      <p>If you did not copy it, revoke it and create another.</p>
      <p class="actions">
        <ButtonLink to={`/keys/${apiKey.id}`}>Go to the key</ButtonLink>
        <QuietLink to="/keys/new">Create another</QuietLink>
      </p>
    </Layout>
  );
}

function Replaced({ old }: { old: ApiKey }): VNode {
  return (
    <section class="card">
      <h2>
        The old key <span class="mono">…{old.last4}</span>
      </h2>
      <p>
        <OverlapAdvice name="The old key" apiKey={old} />
      </p>
      <p>
        It works until <Time at={old.expires_at} />. To end it sooner, revoke it when the bot has
        changed over: <a href={`/keys/${old.id}`}>see the old key</a>.
      </p>
    </section>
  );
}
