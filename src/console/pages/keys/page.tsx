/** The list of a desk's keys. */
import type { VNode } from "preact";
import { keyState } from "../../../domain/key/key.ts";
import { ButtonLink, None, Pager } from "../../ui/components.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Layout } from "../../ui/layout.tsx";
import { Sparkline } from "../../ui/sparkline.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { PastMinute, PastOrFuture } from "../../ui/times.tsx";
import { shorten } from "../../ui/words.ts";
import type { MemberVisit } from "../../server/visit.ts";
import { lateUseOf } from "./key-activity.ts";
import { CHART, type KeyListing, type KeyUse } from "./key-list.ts";
import { ReadTag, StateTag, StillInUseTag, SuccessorLink } from "./state-tag.tsx";

const columns: readonly Column[] = [
  { name: "Key", phone: "main" },
  { name: "State", phone: "main end" },
  { name: `${CHART.count} days`, phone: "more end" },
  { name: "Requests, 24 h", isNumber: true },
  { name: "Rejected", isNumber: true },
  { name: "Last used", phone: "more", isLabelled: true, isNumber: true },
  { name: "Expires", phone: "more", isLabelled: true, isNumber: true },
];

export function KeyListPage({
  visit,
  listing,
}: {
  visit: MemberVisit;
  listing: KeyListing;
}): VNode {
  const { keys, older, newest, ended } = listing;
  if (keys.length === 0 && newest === null) return <NoKeyPage visit={visit} ended={ended} />;
  return (
    <Layout title="Keys" visit={visit} actions={<CreateLink />}>
      <List
        caption="The keys of your desk; requests and rejected ones are those of the last 24 hours"
        columns={columns}
        items={keys}
        cells={cellsOf}
        to={({ apiKey }) => `/keys/${apiKey.id}`}
        isNamed
      />
      <Pager label="Pages of keys" newest={newest} older={older} />
      <EndedLink to={ended} />
    </Layout>
  );
}

function EndedLink({ to }: { to: string | null }): VNode | null {
  if (to === null) return null;
  return (
    <p class="actions">
      <a href={to}>Keys that have ended</a>
    </p>
  );
}

function CreateLink(): VNode {
  return (
    <ButtonLink to="/keys/new">
      <Icon name="plus" />
      Create a key
    </ButtonLink>
  );
}

function NoKeyPage({ visit, ended }: { visit: MemberVisit; ended: string | null }): VNode {
  return (
    <Layout title="Keys" visit={visit}>
      <div class="empty">
        <h2>{ended === null ? "No key yet" : "No active key"}</h2>
        <p>
          A bot sends its signals with a key. Create the first one: you see it once, with a command
          that sends a signal with it.
        </p>
        <p class="actions">
          <CreateLink />
        </p>
        <EndedLink to={ended} />
      </div>
    </Layout>
  );
}

function cellsOf({ apiKey, isExpiring, activity, days, now }: KeyUse): VNode[] {
  const { id, scope, label, last4, last_used_at, expires_at } = apiKey;
  const late = lateUseOf(apiKey, activity, now);
  return [
    <>
      {label === null ? <None>no label</None> : <bdi>{shorten(label)}</bdi>}{" "}
      <span class="mono soft">…{last4}</span>
    </>,
    <>
      <StateTag apiKey={apiKey} isExpiring={isExpiring} now={now} />
      <SuccessorLink {...apiKey} />
      {scope === "read" && (
        <>
          {" "}
          <ReadTag />
        </>
      )}
      {late !== null && (
        <>
          {" "}
          <StillInUseTag />
        </>
      )}
    </>,
    <Sparkline {...CHART} now={now} buckets={days} label={`Requests in ${CHART.count} days`} />,
    <Count of={activity?.requests} />,
    <Count of={activity?.rejected} to={`/activity?key=${id}`} />,
    <PastMinute at={late?.lastAt ?? last_used_at} now={now} />,
    keyState(apiKey, now) === "active" ? <PastOrFuture at={expires_at} now={now} /> : <None />,
  ];
}

function Count({ of = 0, to }: { of: number | undefined; to?: string }): VNode {
  if (of === 0) return <None />;
  const text = of.toLocaleString("en");
  return to === undefined ? <>{text}</> : <a href={to}>{text}</a>;
}
