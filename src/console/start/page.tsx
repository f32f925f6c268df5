/** From an empty desk to its first signal. */
import type { ComponentChildren, VNode } from "preact";
import type { ApiKey } from "../../domain/key.ts";
import type { StoredSignal } from "../../domain/stored-signal.ts";
import { RejectedNotice } from "../activity/rejected.tsx";
import { ButtonLink, CopyButton, KeyName, Tag } from "../ui/components.tsx";
import { Layout } from "../ui/layout.tsx";
import { LiveParts, LiveStatus } from "../ui/live.tsx";
import { Past } from "../ui/times.tsx";
import { assets } from "../web/assets.ts";
import type { MemberVisit } from "../web/visit.ts";
import { KEY_VARIABLE, snippets } from "./snippets.ts";
import { alertMessage, nginxRecipe } from "./tradingview.ts";

export interface Progress {
  /** A key that a bot can send with. */
  readonly key: ApiKey | null;
  /** The newest signal. */
  readonly signal: StoredSignal | null;
  /** Requests in the last 24 hours. */
  readonly rejected: number;
}

export function StartPage({
  visit,
  progress,
  publicUrl,
  secret,
}: {
  visit: MemberVisit;
  progress: Progress;
  publicUrl: string;
  /** For the recipes on the page; the server does not use it. */
  secret: string;
}): VNode {
  return (
    <Layout
      title="Set-up guide"
      visit={visit}
      actions={progress.signal === null ? <LiveStatus /> : undefined}
      scripts={progress.signal === null ? [assets.live.path] : []}
    >
      <p>Three steps from here to a signal that is stored.</p>
      <LiveParts everyMs={2_000}>
        <ProgressSteps progress={progress} now={visit.now} />
      </LiveParts>
      <section class="wide">
        <h2>Snippets</h2>
        <p>
          Put the key into the environment of the bot, not into its source. To try it in a terminal,
          without showing the key or keeping it in the history:
        </p>
        <Code
          id="read-key"
          text={`stty -echo; read -r ${KEY_VARIABLE}; stty echo; export ${KEY_VARIABLE}`}
        />
        {snippets(publicUrl).map(({ id, name, how, text, client }, index) => (
          <details name="snippet" open={index === 0}>
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
          curl), until it gets a 2xx, or a 4xx other than 429. A lost answer costs nothing: a
          repeated id gets the <code>id</code> of the first signal, and nothing is stored twice. A
          bot that may restart between two attempts should keep the id with its order.
        </p>
      </section>
      <TradingView publicUrl={publicUrl} secret={secret} />
    </Layout>
  );
}

/** The script looks for changes until the first signal has arrived. */
function ProgressSteps({ progress, now }: { progress: Progress; now: number }): VNode {
  const { key, signal, rejected } = progress;
  const isDone = signal !== null;
  return (
    <ol class="steps" data-part="progress" data-done={isDone ? "" : undefined} aria-live="polite">
      <Step name="Create a key" isDone={key !== null}>
        {key === null ? (
          <>
            <p>A bot sends its signals with a key. You see it once: have a safe place ready.</p>
            <p class="actions">
              <ButtonLink to="/keys/new">Create a key</ButtonLink>
            </p>
          </>
        ) : (
          <p>
            You have <KeyName {...key} />. <a href="/keys">See your keys</a>
          </p>
        )}
      </Step>
      <Step name="Send a signal" isDone={isDone}>
        <p>With one of the snippets below: they have the address of this server in them.</p>
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
            It is here: <bdi>{signal.symbol}</bdi>, {signal.side},{" "}
            <Past at={signal.received_at} now={now} />.{" "}
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

function TradingView({ publicUrl, secret }: { publicUrl: string; secret: string }): VNode {
  return (
    <section class="wide">
      <h2>TradingView alerts</h2>
      <p>
        A TradingView alert can call a webhook, but cannot send a header, so it cannot send the key.
        Put a reverse proxy of your own in front: it accepts alerts only from TradingView's
        addresses, and adds the header. All TradingView users' alerts come from those addresses, so
        the path contains a secret, made for this page just now: treat the webhook's URL like a
        password. Do not put the key into the address or the message of an alert.
      </p>
      <details name="recipe">
        <summary>nginx</summary>
        <p>In the server block of a name that has a certificate:</p>
        <Code id="nginx" text={nginxRecipe(publicUrl, secret)} />
      </details>
      <details name="recipe">
        <summary>The message of the alert</summary>
        <Code id="alert" text={alertMessage} />
        <p>
          It must be valid JSON once the placeholders are filled in: otherwise TradingView sends it
          as plain text, which gets 415.
        </p>
      </details>
      <p class="notice">
        <strong>Ids that repeat lose signals.</strong> Two signals with the same{" "}
        <code>client_signal_id</code> are one signal: the second gets 200, and is not stored.{" "}
        <code>{"{{time}}"}</code> is the time of the bar, the same for each alert within it;{" "}
        <code>{"{{timenow}}"}</code> has whole seconds; <code>{"{{strategy.order.id}}"}</code> is
        the name of the order in the script, the same each time. Let an alert fire once per bar, or
        combine placeholders into a unique id, as in the message above, with a different name for
        each alert. Without the field no signal is lost, but each repetition is stored.
      </p>
      <p>
        TradingView waits at most 3 seconds, and an alert that gets no answer may be lost: send
        signals that must arrive from a program of your own.
      </p>
    </section>
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
