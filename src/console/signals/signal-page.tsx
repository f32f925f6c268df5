/** One signal, with all that is known of it. */
import type { VNode } from "preact";
import { REPEATED_SIGNALS_KEPT, type Repeats } from "../../domain/activity.ts";
import { fieldNames } from "../../domain/signal.ts";
import type { StoredSignal } from "../../domain/stored-signal.ts";
import { newestAgo } from "../ui/relative.ts";
import { describeSkew } from "./skew.ts";
import type { MemberVisit } from "../web/visit.ts";
import { KeyName } from "../keys/page.tsx";
import { Layout, Time } from "../ui/layout.tsx";
import { Past } from "../ui/moment.tsx";

/** The last moment that a `Date` holds (ECMA-262, 21.4.1.1). A client's time may be later. */
const DATE_MS_MAX = 8.64e15;

/** Fields that the page shows as they are; the others have a row or section of their own. */
const plainFields = fieldNames.filter(
  (name) => name !== "signal_time" && name !== "client_signal_id" && name !== "metadata",
);

export function SignalDetailPage({
  visit,
  signal,
  repeats,
}: {
  visit: MemberVisit;
  signal: StoredSignal;
  /** Null where no duplicate is known. */
  repeats: Repeats | null;
}): VNode {
  const { id, received_at, signal_time, client_signal_id, metadata } = signal;
  return (
    <Layout title="Signal" member={visit.member} csrfToken={visit.csrfToken} place="/signals">
      <dl class="card">
        <dt>Id</dt>
        <dd>
          <span class="mono" id="signal-id">
            {id}
          </span>{" "}
          <button type="button" class="quiet" data-copy="#signal-id">
            Copy
          </button>
        </dd>
        <dt>client_signal_id</dt>
        <dd>
          {client_signal_id === null ? (
            <span class="none">none: a retry would be stored as another signal</span>
          ) : (
            <bdi class="mono">{client_signal_id}</bdi>
          )}
        </dd>
        {client_signal_id !== null && <Duplicates repeats={repeats} now={visit.now} />}
        <dt>Received</dt>
        <dd>
          <Past at={received_at} now={visit.now} /> <span class="mono">{received_at}</span>
        </dd>
        <dt>signal_time</dt>
        <dd>
          <SignalTime at={signal_time} />
        </dd>
        <dt>Clocks</dt>
        <dd>
          {signal_time === null ? (
            <span class="none">unknown: the signal has no time of its own</span>
          ) : (
            `${describeSkew(received_at - signal_time)}.`
          )}
        </dd>
        {plainFields.map((name) => (
          <Row name={labelOf(name)} value={signal[name]} />
        ))}
        <dt>Key</dt>
        <dd>
          <a href={`/keys/${signal.key_id}`}>
            <KeyName label={signal.key_label} last4={signal.key_last4} />
          </a>
        </dd>
      </dl>
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
      <p>
        <a href="/signals">All signals</a>
      </p>
    </Layout>
  );
}

function Duplicates({ repeats, now }: { repeats: Repeats | null; now: number }): VNode {
  return (
    <>
      <dt>Duplicates</dt>
      <dd>
        {repeats === null ? <span class="none">none known</span> : describeRepeats(repeats, now)}
        <p class="hint">
          Known for the newest {REPEATED_SIGNALS_KEPT.toLocaleString("en")} signals of your desk
          that had any; those of the last seconds are not counted yet.
        </p>
      </dd>
    </>
  );
}

/** Such as "2, the last 3 minutes ago. 1 of them had another content: price, quantity." */
function describeRepeats({ duplicates, differing, differs, lastAt }: Repeats, now: number): string {
  const times = duplicates.toLocaleString("en");
  const counted = `${times}, ${newestAgo(duplicates, lastAt, now)}`;
  if (differing === 0) return `${counted}, with the same content`;
  const which = duplicates === 1 ? "It" : `${differing.toLocaleString("en")} of them`;
  return `${counted}. ${which} had another content: ${differs.join(", ")}. The signal was stored as first sent.`;
}

function SignalTime({ at }: { at: number | null }): VNode {
  if (at === null) return <span class="none">none</span>;
  return (
    <>
      {at <= DATE_MS_MAX && <Time at={at} />} <span class="mono">{at}</span>
    </>
  );
}

/** "venue_note" becomes "Venue note". */
function labelOf(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
}

function Row({ name, value }: { name: string; value: string | number | null }): VNode {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value === null ? <span class="none">none</span> : <bdi>{String(value)}</bdi>}</dd>
    </>
  );
}
