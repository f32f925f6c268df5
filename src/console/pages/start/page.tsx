/** `/start`: from an empty desk to its first signal. */
import type { ComponentChildren, VNode } from "preact";
import type { ApiKey } from "../../../domain/key/key.ts";
import { firstSignalCommand, KEY_VARIABLE } from "../../../lib/text/shell.ts";
import { newestSignal } from "../../../domain/signal/chunks.ts";
import type { StoredSignal } from "../../../domain/signal/stored-signal.ts";
import { countRejected, RejectedNotice } from "../activity/rejected.tsx";
import { ButtonLink, CopyButton, KeyName, Tag, ViewerNote } from "../../ui/components.tsx";
import { useIsManager } from "../../ui/context.ts";
import { Layout } from "../../ui/layout.tsx";
import { LiveParts, LiveStatus } from "../../ui/live.tsx";
import { Past } from "../../ui/times.tsx";
import { assets } from "../../server/assets.ts";
import { forMembers, type Route } from "../../server/routes.ts";
import { snippets } from "./snippets.ts";

interface Progress {
  /** A key that a bot can send with. */
  readonly key: ApiKey | null;
  /** The newest signal. */
  readonly signal: StoredSignal | null;
  /** Requests in the last 24 hours. */
  readonly rejected: number;
}

export const startRoutes: readonly Route[] = [
  forMembers.page("/start", async (services, visit) => {
    const { deskId: desk } = visit.member;
    const active = { desk, state: "active", scope: "send", limit: 1 } as const;
    const [key = null] = await services.registry.pageKeys(active);
    const signal = await newestSignal(services.signals, desk);
    const rejected = await countRejected(services, visit);
    return <StartPage progress={{ key, signal, rejected }} publicUrl={services.publicUrl} />;
  }),
];

function StartPage({ progress, publicUrl }: { progress: Progress; publicUrl: string }): VNode {
  return (
    <Layout
      title="Set-up guide"
      actions={progress.signal === null ? <LiveStatus /> : undefined}
      scripts={progress.signal === null ? [assets.live.path] : []}
    >
      <p>Three steps from here to a signal that is stored.</p>
      <LiveParts everyMs={2_000}>
        <ProgressSteps progress={progress} />
      </LiveParts>
      <section class="wide">
        <h2>Send the first one from a terminal</h2>
        <p>
          This reads the key without showing it or keeping it in the history, and sends a signal.
          Sent again, it is a duplicate, and nothing is stored twice.
        </p>
        <Code
          id="read-key"
          text={`stty -echo; read -r ${KEY_VARIABLE}; stty echo; export ${KEY_VARIABLE}`}
        />
        <Code
          id="first-signal"
          text={firstSignalCommand(publicUrl, `$${KEY_VARIABLE}`, "my-first-signal").trim()}
        />
      </section>
      <section class="wide">
        <h2>Snippets for bots</h2>
        <p>Put the key into the environment of the bot, not into its source.</p>
        {snippets(publicUrl).map(({ id, name, how, text, client }) => (
          <details name="snippet">
            <summary>{name}</summary>
            <p>{how}</p>
            <Code id={`snippet-${id}`} text={text} />
            {client !== null && (
              <>
                <p>
                  The client, <code>{client.file}</code>:
                </p>
                <Code id={`client-${id}`} text={client.text} />
              </>
            )}
          </details>
        ))}
        <p>
          Each snippet makes the signal's <code>client_signal_id</code> once, before the first
          attempt, and sends the same body again, with exponential backoff (and jitter, but for
          curl), until Signalbox itself answers with a 2xx, or a 4xx other than 429. A lost answer
          costs nothing: a repeated id gets the <code>id</code> of the first signal, and nothing is
          stored twice. A bot that may restart between two attempts should keep the id with its
          order.
        </p>
        <p>
          A TradingView alert cannot send a key. Put a proxy of your own in front, as{" "}
          <code>docs/tradingview.md</code> of Signalbox shows for nginx and Caddy.
        </p>
      </section>
    </Layout>
  );
}

/** The script looks for changes until the first signal has arrived. */
function ProgressSteps({ progress }: { progress: Progress }): VNode {
  const { key, signal, rejected } = progress;
  const isManager = useIsManager();
  const isDone = signal !== null;
  return (
    <ol class="steps" data-part="progress" data-done={isDone ? "" : undefined} aria-live="polite">
      <Step name="Create a key" isDone={key !== null}>
        {key === null ? (
          <>
            <p>A bot sends its signals with a key. You see it once: have a safe place ready.</p>
            {isManager && (
              <p class="actions">
                <ButtonLink to="/keys/new">Create a key</ButtonLink>
              </p>
            )}
            <ViewerNote can="create keys" />
          </>
        ) : (
          <p>
            You have <KeyName {...key} />. <a href="/keys">See your keys</a>
          </p>
        )}
      </Step>
      <Step name="Send a signal" isDone={isDone}>
        <p>With the command or a snippet below: they have the address of this server in them.</p>
      </Step>
      <Step name="See it here" isDone={isDone}>
        {signal === null ? (
          <>
            <p>
              No signal has arrived yet. <a href="/start">Refresh</a>
            </p>
            <RejectedNotice count={rejected} />
          </>
        ) : (
          <p>
            It is here: <bdi>{signal.symbol}</bdi>, {signal.side}, <Past at={signal.received_at} />.{" "}
            <a href={`/signals/${signal.id}`}>Look at it</a>, or at{" "}
            <a href="/signals">all signals</a>.
          </p>
        )}
      </Step>
    </ol>
  );
}

function Step({
  name,
  isDone,
  children,
}: {
  name: string;
  isDone: boolean;
  children: ComponentChildren;
}): VNode {
  return (
    <li>
      <h2>
        {name} {isDone && <Tag tone="good">Done</Tag>}
      </h2>
      {children}
    </li>
  );
}

function Code({ id, text }: { id: string; text: string }): VNode {
  return (
    <div class="code">
      <pre id={id} tabindex={0}>
        {text}
      </pre>
      <CopyButton of={id} />
    </div>
  );
}
