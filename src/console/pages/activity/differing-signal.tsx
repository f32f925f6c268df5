/** `/activity/differing/:id`: a signal beside the duplicates that differ from it. */
import type { VNode } from "preact";
import {
  DIFFERING_PER_SIGNAL_KEPT,
  keptValue,
  type SentDuplicate,
} from "../../../domain/activity/sent.ts";
import type { ApiKey } from "../../../domain/key/key.ts";
import { fieldNames, type Signal } from "../../../domain/signal/signal.ts";
import type { StoredSignal } from "../../../domain/signal/stored-signal.ts";
import { forMembers, found, type Route } from "../../server/routes.ts";
import { KeyLink, None, QuietLink, ViewerNote } from "../../ui/components.tsx";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { PreciseTime } from "../../ui/times.tsx";
import { inTitle, shorten } from "../../ui/words.ts";
import { findKey } from "../keys/key-list.ts";

export const differingSignalRoutes: readonly Route[] = [
  forMembers.page("/activity/differing/:id", async (services, visit) => {
    const { deskId } = visit.member;
    const signal = found(await services.signals.get(deskId, visit.params["id"] ?? ""));
    const { keeps_sent: isKept } = await services.registry.getDesk(deskId);
    const kept = isKept ? await services.activity.sentDuplicates(deskId, signal.id) : [];
    const duplicates = await Promise.all(
      kept.map(async (one) => ({ ...one, apiKey: await findKey(services, visit, one.key_id) })),
    );
    return (
      <Layout
        title={`Duplicates of ${inTitle(signal.symbol)}`}
        heading={
          <>
            Duplicates of <bdi>{shorten(signal.symbol)}</bdi>
          </>
        }
        up={{ path: "/activity/differing", name: "Duplicates that differ" }}
        actions={<QuietLink to={`/signals/${signal.id}`}>The signal</QuietLink>}
      >
        <p>
          They repeat the <code>client_signal_id</code>{" "}
          <bdi class="mono">{shorten(signal.client_signal_id ?? "")}</bdi> with other content, which
          was not stored.
        </p>
        {duplicates.map((one) => (
          <Duplicate signal={signal} {...one} />
        ))}
        {duplicates.length === 0 && (
          <p class="empty">
            {isKept
              ? "What they sent is no longer kept, or will appear here within seconds."
              : "Your desk keeps nothing of what requests sent."}
          </p>
        )}
        <p class="hint">
          The latest {DIFFERING_PER_SIGNAL_KEPT} are kept, without what looks like a key.{" "}
          {visit.member.role === "manager" && <a href="/activity/kept">Change what is kept</a>}
        </p>
        <ViewerNote can="change what is kept" />
      </Layout>
    );
  }),
];

interface Difference {
  readonly name: keyof Signal;
  readonly stored: string | number | null;
  readonly sent: string | number | null;
}

const columns: readonly Column<Difference>[] = [
  { name: "Field", cell: ({ name }) => <code>{name}</code>, phone: "main", isName: true },
  {
    name: "Stored",
    cell: ({ stored }) => <Value of={stored} />,
    phone: "more",
    isLabelled: true,
  },
  { name: "Sent", cell: ({ sent }) => <Value of={sent} />, phone: "more", isLabelled: true },
];

function Duplicate({
  signal,
  at,
  apiKey,
  values,
}: SentDuplicate & { signal: StoredSignal; apiKey: ApiKey | null }): VNode {
  const differences = fieldNames.flatMap((name): Difference[] => {
    const sent = values[name];
    return sent === undefined ? [] : [{ name, stored: keptValue(name, signal[name]), sent }];
  });
  return (
    <section>
      <h2>
        <PreciseTime at={at} />
      </h2>
      {apiKey !== null && (
        <p>
          Sent with <KeyLink {...apiKey} />
        </p>
      )}
      <List
        caption="The fields that differ, as stored and as sent"
        className="beside"
        columns={columns}
        items={differences}
      />
    </section>
  );
}

function Value({ of }: { of: string | number | null }): VNode {
  return of === null ? <None>not sent</None> : <bdi class="value">{String(of)}</bdi>;
}
