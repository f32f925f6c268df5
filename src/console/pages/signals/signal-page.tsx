/** One signal, with everything that is known about it. */
import type { VNode } from "preact";
import type { Repeats } from "../../../domain/activity/activity.ts";
import { fieldNames } from "../../../domain/signal/signal.ts";
import type { StoredSignal } from "../../../domain/signal/stored-signal.ts";
import { CopyButton, type Fact, Facts, None } from "../../ui/components.tsx";
import { Layout } from "../../ui/layout.tsx";
import { PreciseTime } from "../../ui/times.tsx";
import { inTitle, shorten } from "../../ui/words.ts";
import { type Copies, copiesOf, formatted } from "./copies.ts";
import { History } from "./history.tsx";
import { SideTags } from "./signal-table.tsx";

/** Fields that the page shows as they are; the others have a row or section of their own. */
const plainFields = fieldNames.filter(
  (name) => name !== "signal_time" && name !== "client_signal_id" && name !== "metadata",
);

export function SignalDetailPage({
  signal,
  repeats,
  publicUrl,
}: {
  signal: StoredSignal;
  /** Null: no duplicate is known. */
  repeats: Repeats | null;
  publicUrl: string;
}): VNode {
  const copies = copiesOf(signal, publicUrl);
  return (
    <Layout
      title={titleOf(signal)}
      heading={
        <>
          <bdi>{shorten(signal.symbol)}</bdi> <SideTags {...signal} />
        </>
      }
      up={{ path: "/signals", name: "Signals" }}
      actions={
        copies !== null && (
          <>
            <CopyButton of="as-json">Copy as JSON</CopyButton>
            <CopyButton of="as-curl">Copy as curl</CopyButton>
          </>
        )
      }
    >
      <div class="columns">
        <div>
          <Facts facts={factsOf(signal)} />
          <Metadata {...signal} />
          {copies !== null && <CopySources {...copies} />}
        </div>
        <History signal={signal} repeats={repeats} />
      </div>
    </Layout>
  );
}

function titleOf({ symbol, side, direction }: StoredSignal): string {
  return [inTitle(symbol), side, direction].filter((word) => word !== null).join(" ");
}

function factsOf(signal: StoredSignal): Fact[] {
  const { id, received_at, signal_time, client_signal_id } = signal;
  return [
    ...plainFields.map((name): Fact => {
      const value = signal[name];
      return [labelOf(name), value === null ? <None /> : <bdi>{String(value)}</bdi>];
    }),
    ["signal_time", <SignalTime at={signal_time} />],
    ["received_at", <Milliseconds at={received_at} />],
    [
      "client_signal_id",
      client_signal_id === null ? <None /> : <Id of="client-id" text={client_signal_id} />,
    ],
    ["Id", <Id of="signal-id" text={id} />],
  ];
}

function Id({ of, text }: { of: string; text: string }): VNode {
  return (
    <span class="id">
      <bdi class="mono" id={of} data-copied={text}>
        {text}
      </bdi>{" "}
      <CopyButton of={of} />
    </span>
  );
}

function SignalTime({ at }: { at: number | null }): VNode {
  return at === null ? <None /> : <Milliseconds at={at} />;
}

/** A client's time may be later than any date. */
function Milliseconds({ at }: { at: number }): VNode {
  const isDate = !Number.isNaN(new Date(at).getTime());
  return (
    <>
      {isDate && (
        <>
          <PreciseTime at={at} />{" "}
        </>
      )}
      <span class={isDate ? "mono soft" : "mono"}>{at}</span>
    </>
  );
}

function Metadata({ id, metadata }: StoredSignal): VNode {
  return (
    <section>
      <div class="row">
        <h2>Metadata</h2>
        {metadata !== null && (
          <p class="actions">
            <CopyButton of="metadata" />
            <a href={`/signals/${id}/metadata`} download>
              Download as sent
            </a>
          </p>
        )}
      </div>
      {metadata === null ? (
        <p class="none">None</p>
      ) : (
        <pre id="metadata" tabindex={0} aria-label="Metadata">
          {formatted(metadata)}
        </pre>
      )}
    </section>
  );
}

/** What the buttons copy, also to be read or copied without a script. */
function CopySources({ json, curl }: Copies): VNode {
  return (
    <section>
      <details>
        <summary>JSON</summary>
        <pre id="as-json" tabindex={0} aria-label="The signal as JSON">
          {json}
        </pre>
      </details>
      <details>
        <summary>curl</summary>
        <pre id="as-curl" tabindex={0} aria-label="A command that sends the signal again">
          {curl}
        </pre>
      </details>
    </section>
  );
}

function labelOf(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
}
