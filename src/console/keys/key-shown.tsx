/** The page that shows a new key, once, and what stands in its place from then on. */
import type { VNode } from "preact";
import { firstSignalCommand } from "../../domain/shell.ts";
import type { ApiKey } from "../../domain/key.ts";
import { overlapAdvice } from "./last-use.ts";
import type { MemberVisit } from "../web/visit.ts";
import { KeyName } from "./page.tsx";
import { Layout } from "../ui/layout.tsx";
import { Moment } from "../ui/moment.tsx";

export function KeyShownPage({
  visit,
  apiKey,
  plaintext,
  replaced,
  publicUrl,
}: {
  visit: MemberVisit;
  apiKey: ApiKey;
  plaintext: string;
  /** The key that it takes the place of; null: of none. */
  replaced: ApiKey | null;
  publicUrl: string;
}): VNode {
  return (
    <Layout title="Your new key" member={visit.member} csrfToken={visit.csrfToken} place="/keys">
      <p class="notice">
        This page shows the key this once. Copy it now, to where your bot keeps its secrets.
      </p>
      <section class="card">
        <h2>
          <KeyName {...apiKey} />
        </h2>
        <p class="secret">
          <code class="mono" id="key">
            {plaintext}
          </code>
        </p>
        <p class="actions">
          <Copy of="#key" name="Copy the key" isMain />
        </p>
      </section>
      {replaced !== null && <Replaced old={replaced} now={visit.now} />}
      <section class="card">
        <h2>Send a signal with it</h2>
        <pre class="mono" id="command" tabindex={0}>
          {firstSignalCommand(publicUrl, plaintext, `first-of-${plaintext.slice(-4)}`)}
        </pre>
        <p class="actions">
          <Copy of="#command" name="Copy the command" />
        </p>
      </section>
      <p class="actions">
        <a class="button quiet" href={`/keys/${apiKey.id}`}>
          I've saved it
        </a>
      </p>
    </Layout>
  );
}

/** After a reload, too late, or for another session: nobody has the key any more but who copied it. */
export function ShownAlreadyPage({ visit, apiKey }: { visit: MemberVisit; apiKey: ApiKey }): VNode {
  return (
    <Layout
      title="Shown once already"
      member={visit.member}
      csrfToken={visit.csrfToken}
      place="/keys"
    >
      <p>
        <KeyName {...apiKey} />: This key was shown once and cannot be shown again.
      </p>
      <p>If you did not copy it, revoke it and create another.</p>
      <p class="actions">
        <a class="button" href={`/keys/${apiKey.id}`}>
          Go to the key
        </a>
        <a class="button quiet" href="/keys/new">
          Create another
        </a>
      </p>
    </Layout>
  );
}

function Replaced({ old, now }: { old: ApiKey; now: number }): VNode {
  return (
    <section class="card">
      <h2>
        The old key <span class="mono">…{old.last4}</span>
      </h2>
      <p>{overlapAdvice("The old key", old, now)}</p>
      <p>
        It works until <Moment at={old.expires_at} now={now} />. To end it sooner, revoke it when
        the bot has changed over: <a href={`/keys/${old.id}`}>see the old key</a>.
      </p>
    </section>
  );
}

/** Shown by the script that it needs. */
function Copy({ of, name, isMain = false }: { of: string; name: string; isMain?: boolean }): VNode {
  return (
    <button type="button" class={isMain ? undefined : "quiet"} data-copy={of} hidden>
      {name}
    </button>
  );
}
