/** From an empty desk to its first signal. */
import type { VNode } from "preact";
import type { ApiKey } from "../../domain/key.ts";
import type { StoredSignal } from "../../domain/stored-signal.ts";
import { assets } from "../web/assets.ts";
import { KEY_VARIABLE, type Snippet, snippets } from "./snippets.ts";
import { alertMessage, caddyRecipe, nginxRecipe } from "./tradingview.ts";
import type { MemberVisit } from "../web/visit.ts";
import { KeyName } from "../keys/page.tsx";
import { Layout } from "../ui/layout.tsx";
import { Past } from "../ui/moment.tsx";

export interface Progress {
  /** That a bot could send with. */
  readonly key: ApiKey | null;
  /** The newest signal. */
  readonly signal: StoredSignal | null;
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
  /** For a recipe on the page, and nothing of ours. */
  secret: string;
}): VNode {
  return (
    <Layout
      title="Getting started"
      member={visit.member}
      csrfToken={visit.csrfToken}
      place="/start"
      scripts={[assets.live.path, assets.start.path]}
    >
      <p>Three steps from here to a signal that is stored.</p>
      <ProgressSteps progress={progress} now={visit.now} />
      <section class="card">
        <h2>Snippets</h2>
        <p>
          Put the key into the environment of the bot, not into its source. For a try, in a terminal
          (what is typed there is not shown, nor kept in its history):
        </p>
        <pre tabindex={0}>{`read -rs ${KEY_VARIABLE} && export ${KEY_VARIABLE}`}</pre>
        {snippets(publicUrl).map((snippet, index) => (
          <SnippetView snippet={snippet} isOpen={index === 0} />
        ))}
        <p>
          Each makes the signal's <code>client_signal_id</code> once, before the first attempt, and
          sends the same body again, with exponential backoff and jitter, until it has a 2xx, or a
          4xx other than 429. So a lost answer costs nothing: a repeated id is answered with the
          first one's <code>id</code>, and nothing is stored twice. A bot that restarts between two
          attempts should keep the id with its order.
        </p>
      </section>
      <TradingView publicUrl={publicUrl} secret={secret} />
    </Layout>
  );
}

/** Also what the script asks for. `data-done`: there is nothing more to wait for. */
export function ProgressSteps({ progress, now }: { progress: Progress; now: number }): VNode {
  const { key, signal } = progress;
  const isDone = signal !== null;
  return (
    <section class="card" id="progress" data-done={isDone ? "" : undefined} aria-live="polite">
      <h2>1. Create a key {key !== null && <Done />}</h2>
      {key === null ? (
        <p>
          A bot sends its signals with a key. You see it once: have a safe place ready.{" "}
          <a class="button" href="/keys/new">
            Create a key
          </a>
        </p>
      ) : (
        <p>
          There is <KeyName label={key.label} last4={key.last4} />.{" "}
          <a href="/keys">See your keys</a>
        </p>
      )}
      <h2>2. Send a signal {isDone && <Done />}</h2>
      <p>With one of the snippets below: they have the address of this server in them.</p>
      <h2>3. See it here {isDone && <Done />}</h2>
      {signal === null ? (
        <p>
          <span class="badge calm">waiting</span> No signal has arrived yet.{" "}
          <a href="/start">Refresh</a>
        </p>
      ) : (
        <p class="notice good">
          It is here: <bdi>{signal.symbol}</bdi>, {signal.side},{" "}
          <Past at={signal.received_at} now={now} />.{" "}
          <a href={`/signals/${signal.id}`}>Look at it</a>, or at <a href="/signals">all signals</a>
          .
        </p>
      )}
    </section>
  );
}

function Done(): VNode {
  return <span class="badge good">done</span>;
}

function SnippetView({ snippet, isOpen }: { snippet: Snippet; isOpen: boolean }): VNode {
  const { id, name, how, text } = snippet;
  return (
    <details open={isOpen}>
      <summary>{name}</summary>
      <p>{how}</p>
      <Code id={`snippet-${id}`} text={text} />
    </details>
  );
}

function TradingView({ publicUrl, secret }: { publicUrl: string; secret: string }): VNode {
  return (
    <section class="card">
      <h2>TradingView alerts</h2>
      <p>
        An alert of TradingView can call a webhook, but not with a header of yours, so it cannot
        bring the key. Put a reverse proxy of your own between: it takes alerts from TradingView's
        addresses alone, and adds the header. Everybody's alerts come from those addresses, so the
        path has a secret in it, made for this page just now: treat the webhook's URL like a
        password. Do not put the key into the address or the message of an alert.
      </p>
      <details>
        <summary>nginx</summary>
        <p>In the server block of a name that has a certificate:</p>
        <Code id="nginx" text={nginxRecipe(publicUrl, secret)} />
      </details>
      <details>
        <summary>Caddy</summary>
        <Code id="caddy" text={caddyRecipe(publicUrl, secret)} />
      </details>
      <details>
        <summary>The message of the alert</summary>
        <Code id="alert" text={alertMessage} />
        <p>
          It has to be valid JSON once the placeholders are filled in: else TradingView sends it as
          plain text, which is answered with 415.
        </p>
      </details>
      <p class="notice">
        <strong>Ids that repeat lose signals.</strong> Two signals with one{" "}
        <code>client_signal_id</code> are one signal: the second is answered with 200, and not
        stored. <code>{"{{time}}"}</code> is the time of the bar, the same for each alert within it;{" "}
        <code>{"{{timenow}}"}</code> has whole seconds; <code>{"{{strategy.order.id}}"}</code> is
        the name of the order in the script, the same each time. Let an alert fire once a bar, or
        put together what makes it unique, as in the message above; and give two alerts different
        names in it. Without the field nothing is lost, and each repetition is stored.
      </p>
      <p>
        TradingView waits for 3 seconds at most, and an alert that gets no answer may be lost: for
        signals that must arrive, send them from a program of your own.
      </p>
    </section>
  );
}

function Code({ id, text }: { id: string; text: string }): VNode {
  return (
    <>
      <pre id={id} tabindex={0}>
        {text}
      </pre>
      <button type="button" class="quiet" data-copy={`#${id}`}>
        Copy
      </button>
    </>
  );
}
