/** One signal, with everything that is known about it. */
import type { VNode } from "preact";
import type { Repeats } from "../../domain/activity.ts";
import { fieldNames } from "../../domain/signal.ts";
import type { StoredSignal } from "../../domain/stored-signal.ts";
import { CopyButton, type Fact, Facts, KeyName, None } from "../ui/components.tsx";
import { duplicatesHint } from "../ui/hints.ts";
import { Layout } from "../ui/layout.tsx";
import { Past, Time } from "../ui/times.tsx";
import { describeSkew, newestAgo } from "../ui/words.ts";
import type { MemberVisit } from "../web/visit.ts";

/** Fields that the page shows as they are; the others have a row or section of their own. */
const plainFields = fieldNames.filter(
  (name) => name !== "signal_time" && name !== "client_signal_id" && name !== "metadata",
);

interface Shown {
  readonly signal: StoredSignal;
  /** Null: no duplicate is known. */
  readonly repeats: Repeats | null;
}

export function SignalDetailPage({
  visit,
  signal,
  repeats,
}: Shown & { visit: MemberVisit }): VNode {
  return (
    <Layout title="Signal" visit={visit} place="/signals">
      <Facts class="card" facts={factsOf({ signal, repeats }, visit.now)} />
      <Metadata {...signal} />
      <p>
        <a href="/signals">All signals</a>
      </p>
    </Layout>
  );
}

function factsOf({ signal, repeats }: Shown, now: number): Fact[] {
  const { id, received_at, signal_time, client_signal_id } = signal;
  const duplicates: Fact = ["Duplicates", <Duplicates repeats={repeats} now={now} />];
  return [
    [
      "Id",
      <>
        <span class="mono" id="signal-id">
          {id}
        </span>{" "}
        <CopyButton of="signal-id" />
      </>,
    ],
    [
      "client_signal_id",
      client_signal_id === null ? (
        <None>none: a retry would be stored as another signal</None>
      ) : (
        <bdi class="mono">{client_signal_id}</bdi>
      ),
    ],
    ...(client_signal_id === null ? [] : [duplicates]),
    [
      "Received",
      <>
        <Time at={received_at} /> (<Past at={received_at} now={now} />){" "}
        <span class="mono">{received_at}</span>
      </>,
    ],
    ["signal_time", <SignalTime at={signal_time} />],
    [
      "Clocks",
      signal_time === null ? (
        <None>unknown: the signal has no time of its own</None>
      ) : (
        `${describeSkew(received_at - signal_time)}.`
      ),
    ],
    ...plainFields.map((name): Fact => {
      const value = signal[name];
      return [labelOf(name), value === null ? <None /> : <bdi>{String(value)}</bdi>];
    }),
    [
      "Key",
      <a href={`/keys/${signal.key_id}`}>
        <KeyName label={signal.key_label} last4={signal.key_last4} />
      </a>,
    ],
  ];
}

function Metadata({ id, metadata }: StoredSignal): VNode {
  return (
    <section class="card">
      <h2>Metadata</h2>
      {metadata === null ? (
        <p class="none">none</p>
      ) : (
        <>
          <pre tabindex={0} aria-label="Metadata as sent">
            {metadata}
          </pre>
          <p>
            <a href={`/signals/${id}/metadata`} download>
              Download it, byte for byte as sent
            </a>
          </p>
        </>
      )}
    </section>
  );
}

function Duplicates({ repeats, now }: { repeats: Repeats | null; now: number }): VNode {
  return (
    <>
      {repeats === null ? <None>none known</None> : describeRepeats(repeats, now)}
      <p class="hint">{duplicatesHint}</p>
    </>
  );
}

/** Such as "2, the last 3 minutes ago. 1 of them had other content: price, quantity." */
function describeRepeats({ duplicates, differing, differs, lastAt }: Repeats, now: number): string {
  const times = duplicates.toLocaleString("en");
  const counted = `${times}, ${newestAgo(duplicates, lastAt, now)}`;
  if (differing === 0) return `${counted}, with the same content`;
  const which = duplicates === 1 ? "It" : `${differing.toLocaleString("en")} of them`;
  return `${counted}. ${which} had other content: ${differs.join(", ")}. The signal was stored as first sent.`;
}

function SignalTime({ at }: { at: number | null }): VNode {
  if (at === null) return <None />;
  // A client's time may be later than any date.
  const isDate = !Number.isNaN(new Date(at).getTime());
  return (
    <>
      {isDate && <Time at={at} />} <span class="mono">{at}</span>
    </>
  );
}

function labelOf(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
}
