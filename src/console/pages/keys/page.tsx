/** The list of a desk's keys. */
import plus from "lucide/dist/esm/icons/plus.mjs";
import type { VNode } from "preact";
import { keyState } from "../../../domain/key/key.ts";
import { ButtonLink, Icon, None, Pager, ViewerNote } from "../../ui/components.tsx";
import { useIsManager, useVisit } from "../../ui/context.ts";
import { Layout } from "../../ui/layout.tsx";
import { Sparkline } from "../../ui/sparkline.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { PastMinute, PastOrFuture } from "../../ui/times.tsx";
import { shorten } from "../../ui/words.ts";
import { CHART, type KeyListing, type KeyUse } from "./key-list.ts";
import { StateTags } from "./state-tag.tsx";

const columns: readonly Column<KeyUse>[] = [
  { name: "Key", cell: Name, phone: "main", isName: true },
  { name: "State", cell: StateTags, phone: "main end" },
  {
    name: `${CHART.count} days`,
    cell: ({ days }) => (
      <Sparkline {...CHART} buckets={days} label={`Requests in ${CHART.count} days`} />
    ),
    phone: "more end",
  },
  {
    name: "Requests, 24 h",
    cell: ({ activity }) => <Count of={activity?.requests} />,
    isNumber: true,
  },
  {
    name: "Rejected",
    cell: ({ apiKey: { id }, activity }) => (
      <Count of={activity?.rejected} to={`/activity?key=${id}`} />
    ),
    isNumber: true,
  },
  {
    name: "Last used",
    cell: ({ apiKey, late }) => <PastMinute at={late?.lastAt ?? apiKey.last_used_at} />,
    phone: "more",
    isLabelled: true,
    isNumber: true,
  },
  {
    name: "Expires",
    cell: (use) => <Expiry {...use} />,
    phone: "more",
    isLabelled: true,
    isNumber: true,
  },
];

export function KeyListPage({ keys, older, newest, ended }: KeyListing): VNode {
  const create = useIsManager() && (
    <ButtonLink to="/keys/new">
      <Icon of={plus} />
      Create a key
    </ButtonLink>
  );
  const note = <ViewerNote can="create, rename, rotate and revoke keys" />;
  const endedLink = ended !== null && (
    <p class="actions">
      <a href={ended}>Keys that have ended</a>
    </p>
  );
  if (keys.length === 0 && newest === null) {
    return (
      <Layout title="Keys">
        <div class="empty">
          <h2>{ended === null ? "No key yet" : "No active key"}</h2>
          <p>
            A bot sends its signals with a key.
            {create !== false &&
              " Create the first one: you see it once, with a command that sends a signal with it."}
          </p>
          {create === false ? note : <p class="actions">{create}</p>}
          {endedLink}
        </div>
      </Layout>
    );
  }
  return (
    <Layout title="Keys" actions={create}>
      {note}
      <List
        caption="The keys of your desk; requests and rejected ones are those of the last 24 hours"
        columns={columns}
        items={keys}
        to={({ apiKey }) => `/keys/${apiKey.id}`}
      />
      <Pager label="Pages of keys" newest={newest} older={older} />
      {endedLink}
    </Layout>
  );
}

function Name({ apiKey: { label, last4 } }: KeyUse): VNode {
  return (
    <>
      {label === null ? <None>no label</None> : <bdi>{shorten(label)}</bdi>}{" "}
      <span class="mono soft">…{last4}</span>
    </>
  );
}

function Expiry({ apiKey }: KeyUse): VNode {
  const isActive = keyState(apiKey, useVisit().now) === "active";
  return isActive ? <PastOrFuture at={apiKey.expires_at} /> : <None />;
}

function Count({ of = 0, to }: { of: number | undefined; to?: string }): VNode {
  if (of === 0) return <None />;
  const text = of.toLocaleString("en");
  return to === undefined ? <>{text}</> : <a href={to}>{text}</a>;
}
