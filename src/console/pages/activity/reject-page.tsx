/** One reason for rejected requests: what the bot should do, and the latest requests. */
import type { VNode } from "preact";
import {
  activityWidths,
  type RejectedRequest,
  type RejectedWithBody,
  type Rejects,
} from "../../../domain/activity/activity.ts";
import { answeredCode, errorCatalogue } from "../../../domain/errors.ts";
import { type ApiKey, keyState } from "../../../domain/key/key.ts";
import { CopyButton, type Fact, Facts, KeyLink, KeyName, None } from "../../ui/components.tsx";
import { useVisit } from "../../ui/context.ts";
import { StateTag } from "../keys/state-tag.tsx";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Clock, Past } from "../../ui/times.tsx";
import { plural } from "../../../lib/text/words.ts";
import { describeField, errors } from "./labels.ts";
import { SentSection } from "./sent.tsx";
import { StatusTag } from "./rejects-list.tsx";

interface RejectDetails {
  readonly rejects: Rejects;
  readonly latest: readonly RejectedWithBody[];
  /** The desk keeps what requests sent. */
  readonly isKept: boolean;
  /** The latest keys, and those of the latest requests. */
  readonly keys: readonly ApiKey[];
  /** Only the requests with this key are shown; null: all. */
  readonly narrowedTo: ApiKey | null;
}

export function RejectPage(details: RejectDetails): VNode {
  const { rejects, narrowedTo } = details;
  return (
    <Layout
      title={errors[rejects.error].name}
      up={{
        path: narrowedTo === null ? "/activity" : `/activity?key=${narrowedTo.id}`,
        name: "Activity",
      }}
    >
      <p class="notice">{errors[rejects.error].remedy}</p>
      <Facts facts={factsOf(details)} />
      <section>
        <h2>Latest requests</h2>
        <Requests {...details} />
      </section>
      <SentSection {...details} />
    </Layout>
  );
}

function factsOf({ rejects, keys, narrowedTo }: RejectDetails): Fact[] {
  const { error, fields, count, firstAt, lastAt } = rejects;
  const answer = (
    <>
      <StatusTag {...rejects} /> <code>{answeredCode(error)}</code>
    </>
  );
  return [
    ["Answer", answer],
    ...(fields === null ? [] : [["Fields", <FieldList {...rejects} />] as const]),
    [`Requests, last ${activityWidths.day.kept} days`, count.toLocaleString("en")],
    ["First", <Past at={firstAt} />],
    ["Latest", <Past at={lastAt} />],
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
      {moreFields > 0 && <li>and {plural(moreFields, "more field")}</li>}
    </ul>
  );
}

function Requests({ rejects: { error }, latest, keys }: RejectDetails): VNode {
  const columns: Column<RejectedRequest>[] = [
    { name: "Received", cell: ({ at }) => <Clock at={at} />, phone: "main" },
    {
      name: "Key",
      cell: ({ key_id }) => <Key apiKey={keys.find(({ id }) => id === key_id)} />,
      phone: "main end",
    },
    { name: "Details", cell: (request) => detailOf(request, error) ?? <None />, phone: "more" },
    {
      name: "Request id",
      cell: ({ request_id }) => (
        <>
          <code id={`r-${request_id}`}>{request_id}</code> <CopyButton of={`r-${request_id}`} />
        </>
      ),
      phone: "more",
    },
  ];
  const isDetailed = latest.some((request) => detailOf(request, error) !== null);
  return (
    <List
      caption="The latest requests, newest first"
      columns={columns.filter(({ name }) => isDetailed || name !== "Details")}
      items={latest}
    />
  );
}

function Key({ apiKey }: { apiKey: ApiKey | undefined }): VNode {
  const { now } = useVisit();
  if (apiKey === undefined) return <None />;
  return (
    <>
      <KeyLink {...apiKey} /> {keyState(apiKey, now) !== "active" && <StateTag apiKey={apiKey} />}
    </>
  );
}

/** Null for what the answer always says. */
function detailOf({ message }: RejectedRequest, error: Rejects["error"]): string | null {
  return message === errorCatalogue[answeredCode(error)].message ? null : message;
}
