/** What happened to a signal, in the order in which it happened. */
import type { ComponentChildren, VNode } from "preact";
import type { Repeats } from "../../../domain/activity/activity.ts";
import { isLikeSeconds } from "../../../domain/signal/fields.ts";
import type { StoredSignal } from "../../../domain/signal/stored-signal.ts";
import { KeyLink } from "../../ui/components.tsx";
import { duplicatesHint } from "../../ui/hints.ts";
import { Past, PreciseTime } from "../../ui/times.tsx";
import { plural } from "../../../lib/text/words.ts";
import { describeSkew } from "../../ui/words.ts";

interface Shown {
  readonly signal: StoredSignal;
  /** Null: no duplicate is known. */
  readonly repeats: Repeats | null;
}

export function History(shown: Shown): VNode {
  const { signal } = shown;
  return (
    <section>
      <h2>History</h2>
      <ol class="timeline">
        <Received {...shown} />
        {signal.client_signal_id === null ? (
          <Event name="Duplicates cannot be recognized">
            <p>Without a client_signal_id, a retry is stored as another signal.</p>
          </Event>
        ) : (
          <Duplicates {...shown} />
        )}
      </ol>
    </section>
  );
}

function Event({
  name,
  at,
  children,
}: {
  name: ComponentChildren;
  at?: ComponentChildren;
  children: ComponentChildren;
}): VNode {
  return (
    <li>
      <h3>{name}</h3>
      {at !== undefined && <p>{at}</p>}
      {children}
    </li>
  );
}

function Received({ signal }: Shown): VNode {
  const { received_at, signal_time, key_id, key_label, key_last4 } = signal;
  const at = (
    <>
      <PreciseTime at={received_at} /> (<Past at={received_at} />)
    </>
  );
  return (
    <Event name="Received and stored" at={at}>
      <p>
        With the key <KeyLink id={key_id} label={key_label} last4={key_last4} />
      </p>
      <p class="hint">{describeClocks(received_at, signal_time)}</p>
    </Event>
  );
}

function describeClocks(received_at: number, signal_time: number | null): string {
  if (signal_time === null) return "The signal has no time of its own to compare with.";
  if (isLikeSeconds(signal_time)) return "Its signal_time looks like seconds; send milliseconds.";
  return `${describeSkew(received_at - signal_time)}.`;
}

function Duplicates({ signal, repeats }: Shown): VNode {
  if (repeats === null) {
    return (
      <Event name="No duplicates known">
        <p class="hint">{duplicatesHint}</p>
      </Event>
    );
  }
  const { duplicates, lastAt } = repeats;
  const at = (
    <>
      {duplicates === 1 ? "" : "The latest "}
      <Past at={lastAt} />
    </>
  );
  return (
    <Event name={plural(duplicates, "duplicate")} at={at}>
      <p>
        {describeDifference(repeats)}{" "}
        {repeats.differing > 0 && (
          <a href={`/activity/differing/${signal.id}`}>Compare what was sent</a>
        )}
      </p>
      <p class="hint">{duplicatesHint}</p>
    </Event>
  );
}

/** Such as "1 of them had other content: price, quantity. The signal was stored as first sent." */
function describeDifference({ duplicates, differing, differs }: Repeats): string {
  if (differing === 0) return "With the same content.";
  const which = duplicates === 1 ? "It" : `${differing.toLocaleString("en")} of them`;
  return `${which} had other content: ${differs.join(", ")}. The signal was stored as first sent.`;
}
