/** One reason for rejected requests: what the bot should do, and the latest requests. */
import type { VNode } from "preact";
import {
  activityWidths,
  type RejectedRequest,
  type Rejects,
} from "../../../domain/activity/activity.ts";
import { errorCatalogue } from "../../../domain/errors.ts";
import { type ApiKey, keyState } from "../../../domain/key/key.ts";
import { CopyButton, type Fact, Facts, KeyLink, KeyName, None } from "../../ui/components.tsx";
import { StateTag } from "../keys/state-tag.tsx";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Clock, Past } from "../../ui/times.tsx";
import { counted } from "../../ui/words.ts";
import type { MemberVisit } from "../../server/visit.ts";
import { describeField, errors } from "./labels.ts";
import { StatusTag } from "./rejects-list.tsx";

interface RejectDetails {
  readonly rejects: Rejects;
  readonly latest: readonly RejectedRequest[];
  /** The latest keys, and those of the latest requests. */
  readonly keys: readonly ApiKey[];
  /** Only the requests with this key are shown; null: all. */
  readonly narrowedTo: ApiKey | null;
}

export function RejectPage({ visit, ...details }: RejectDetails & { visit: MemberVisit }): VNode {
  const { rejects, narrowedTo } = details;
  return (
    <Layout
      title={errors[rejects.error].name}
      visit={visit}
      up={{
        path: narrowedTo === null ? "/activity" : `/activity?key=${narrowedTo.id}`,
        name: "Activity",
      }}
    >
      <p class="notice">{errors[rejects.error].remedy}</p>
      <Facts facts={factsOf(details, visit.now)} />
      <section>
        <h2>Latest requests</h2>
        <Requests {...details} now={visit.now} />
      </section>
    </Layout>
  );
}

function factsOf({ rejects, keys, narrowedTo }: RejectDetails, now: number): Fact[] {
  const { error, fields, count, firstAt, lastAt } = rejects;
  const answer = (
    <>
      <StatusTag {...rejects} /> <code>{error}</code>
    </>
  );
  return [
    ["Answer", answer],
    ...(fields === null ? [] : [["Fields", <FieldList {...rejects} />] as const]),
    [`Requests, last ${activityWidths.day.kept} days`, count.toLocaleString("en")],
    ["First", <Past at={firstAt} now={now} />],
    ["Latest", <Past at={lastAt} now={now} />],
    narrowedTo === null
      ? ["Keys", <KeyList rejects={rejects} keys={keys} />]
      : ["Key", <KeyLink {...narrowedTo} />],
  ];
}

/** Each leads to the requests with this key alone. */
function KeyList({
  rejects: { id, keyIds },
  keys,
}: Pick<RejectDetails, "rejects" | "keys">): VNode {
  const shown = keyIds.flatMap((keyId) => keys.find((key) => key.id === keyId) ?? []);
  const more = keyIds.length - shown.length;
  return (
    <ul class="plain-list">
      {shown.map((key) => (
        <li>
          <a href={`/activity/rejects/${id}?key=${key.id}`}>
            <KeyName {...key} />
          </a>
        </li>
      ))}
      {more > 0 && <li class="soft">and {more.toLocaleString("en")} more</li>}
    </ul>
  );
}

/** Names of fields are the client's words. */
function FieldList({ fields, moreFields }: Rejects): VNode {
  return (
    <ul class="plain-list">
      {Object.entries(fields ?? {}).map(([name, reason]) => (
        <li>
          <code>{name}</code> {describeField(name, reason)}
        </li>
      ))}
      {moreFields > 0 && <li>and {counted(moreFields, "more field")}</li>}
    </ul>
  );
}

const columns: readonly Column[] = [
  { name: "Received", phone: "main" },
  { name: "Key", phone: "main end" },
  { name: "Details", phone: "more" },
  { name: "Request id", phone: "more" },
];

function Requests({
  rejects: { error },
  latest,
  keys,
  now,
}: RejectDetails & { now: number }): VNode {
  const details = latest.map((request) => detailOf(request, error));
  const isDetailed = details.some((detail) => detail !== null);
  return (
    <List
      caption="The latest requests, newest first"
      columns={columns.filter((column) => isDetailed || column !== columns[2])}
      items={latest}
      cells={({ at, key_id, request_id }, index) => [
        <Clock at={at} now={now} />,
        <Key apiKey={keys.find(({ id }) => id === key_id)} now={now} />,
        ...(isDetailed ? [details[index] ?? <None />] : []),
        <>
          <code id={`r-${request_id}`}>{request_id}</code> <CopyButton of={`r-${request_id}`} />
        </>,
      ]}
    />
  );
}

function Key({ apiKey, now }: { apiKey: ApiKey | undefined; now: number }): VNode {
  if (apiKey === undefined) return <None />;
  return (
    <>
      <KeyLink {...apiKey} />{" "}
      {keyState(apiKey, now) !== "active" && <StateTag apiKey={apiKey} now={now} />}
    </>
  );
}

/** Null for what the answer always says. */
function detailOf({ message }: RejectedRequest, error: Rejects["error"]): string | null {
  return message === errorCatalogue[error].message ? null : message;
}
