/** One reason for rejected requests: what the bot should do, and the latest requests. */
import type { VNode } from "preact";
import type { RejectedRequest, Rejects } from "../../domain/activity.ts";
import { errorCatalogue } from "../../domain/errors.ts";
import { type ApiKey, keyState } from "../../domain/key.ts";
import { CopyButton, type Fact, Facts, KeyLink, KeyName, None } from "../ui/components.tsx";
import { StateTag } from "../keys/state-tag.tsx";
import { Layout } from "../ui/layout.tsx";
import { type Column, Row, Table } from "../ui/table.tsx";
import { Clock, Past } from "../ui/times.tsx";
import { counted } from "../ui/words.ts";
import type { MemberVisit } from "../web/visit.ts";
import { describeField, errors } from "./labels.ts";
import { StatusTag } from "./rejects-list.tsx";

interface RejectDetails {
  readonly rejects: Rejects;
  /** The latest keys, and those of the latest requests. */
  readonly keys: readonly ApiKey[];
  /** Only the requests with this key are shown; null: all. */
  readonly narrowedTo: ApiKey | null;
}

export function RejectPage({ visit, ...details }: RejectDetails & { visit: MemberVisit }): VNode {
  const { rejects, keys, narrowedTo } = details;
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
        <Requests rejects={rejects} keys={keys} now={visit.now} />
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
    ["Requests", count.toLocaleString("en")],
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
  rejects: { error, latest },
  keys,
  now,
}: {
  rejects: Rejects;
  keys: readonly ApiKey[];
  now: number;
}): VNode {
  const details = latest.map((request) => {
    const apiKey = keys.find(({ id }) => id === request.key_id);
    return { request, apiKey, detail: detailOf(request, error) };
  });
  const isDetailed = details.some(({ detail }) => detail !== null);
  const shown = columns.filter((column) => isDetailed || column !== columns[2]);
  return (
    <Table caption="The latest requests, newest first" columns={shown}>
      <tbody>
        {details.map(({ request, apiKey, detail }) => {
          const id = `r-${request.request_id}`;
          const cells = [
            <Clock at={request.at} now={now} />,
            apiKey === undefined ? (
              <None />
            ) : (
              <>
                <KeyLink {...apiKey} />{" "}
                {keyState(apiKey, now) !== "active" && <StateTag apiKey={apiKey} now={now} />}
              </>
            ),
            ...(isDetailed ? [detail ?? <None />] : []),
            <>
              <code id={id}>{request.request_id}</code> <CopyButton of={id} />
            </>,
          ];
          return <Row columns={shown} cells={cells} />;
        })}
      </tbody>
    </Table>
  );
}

/** Null for what the answer always says. */
function detailOf({ message }: RejectedRequest, error: Rejects["error"]): string | null {
  if (message === null || message === errorCatalogue[error].message) return null;
  // The title has said it.
  return capitalize(message.replace(`${errors[error].name}: `, ""));
}

function capitalize(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}
