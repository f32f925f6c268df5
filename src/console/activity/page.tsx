/** The outcome of the desk's requests. The numbers are in a table, from which a script draws the chart. */
import type { VNode } from "preact";
import {
  type ActivityWidth,
  activityWidths,
  type Bucket,
  type Outcomes,
} from "../../domain/activity.ts";
import type { ApiKey } from "../../domain/key.ts";
import { QuietLink, Table } from "../ui/components.tsx";
import { KeySelect } from "../ui/forms.tsx";
import { Layout } from "../ui/layout.tsx";
import { assets } from "../web/assets.ts";
import type { MemberVisit } from "../web/visit.ts";
import { kinds, spans, widths } from "./labels.ts";
import { type RejectListing, Rejects } from "./rejects-page.tsx";

/** What the address asks for. */
export interface ActivityQuestion {
  readonly width: ActivityWidth;
  /** Only requests with this key; null: all. */
  readonly key: ApiKey | null;
  /** To choose from. */
  readonly keys: readonly ApiKey[];
}

export interface ActivitySpan {
  /** The start of the oldest bucket, epoch milliseconds. */
  readonly start: number;
  /** Those with anything in them, oldest first. */
  readonly buckets: readonly Bucket[];
  /** Whether the desk is known to have sent anything. */
  readonly isUsed: boolean;
}

/** Returns a path with the question and more parameters. */
function pathOf(
  path: string,
  { width, key }: Pick<ActivityQuestion, "width" | "key">,
  more: Readonly<Record<string, string>> = {},
): string {
  const narrowed = key === null ? {} : { key: key.id };
  return `${path}?${new URLSearchParams({ per: width, ...narrowed, ...more }).toString()}`;
}

export function ActivityPage({
  visit,
  question,
  span,
  rejects,
}: {
  visit: MemberVisit;
  question: ActivityQuestion;
  span: ActivitySpan;
  rejects: RejectListing;
}): VNode {
  const { name, refreshMs } = spans[question.width];
  const newest = rejects.isFirst ? { newest: rejects.rejects[0]?.request_id ?? "" } : {};
  return (
    <Layout
      title="Activity"
      visit={visit}
      place="/activity"
      scripts={[assets.uplot.path, assets.live.path, assets.activity.path]}
      styles={[assets.uplotStyle.path]}
    >
      <div class="tools">
        <Spans question={question} />
        <KeyForm question={question} />
      </div>
      <section
        id="activity"
        aria-label={`Requests of the last ${name}`}
        data-path={pathOf("/activity/chart", question, newest)}
        data-every={refreshMs}
      >
        <ChartParts question={question} span={span} isBehind={false} />
      </section>
      <Rejects
        listing={rejects}
        now={visit.now}
        path={(more) => pathOf("/activity", question, more)}
      />
    </Layout>
  );
}

function Spans({ question }: { question: ActivityQuestion }): VNode {
  return (
    <nav class="segments" aria-label="Span">
      {widths.map((width) => (
        <a
          href={pathOf("/activity", { ...question, width })}
          aria-current={width === question.width ? "page" : undefined}
        >
          {spans[width].name} <small>by {width}</small>
        </a>
      ))}
    </nav>
  );
}

function KeyForm({ question: { width, key, keys } }: { question: ActivityQuestion }): VNode | null {
  if (keys.length < 2) return null;
  return (
    <form class="actions" method="get" action="/activity">
      <input type="hidden" name="per" value={width} />
      <label for="key">Key</label>
      <KeySelect keys={keys} chosen={key?.id} none="all" />
      <button class="quiet">Show</button>
    </form>
  );
}

/** The script asks for these, too, and replaces each `data-part`. */
export function ChartParts({
  question,
  span,
  isBehind,
}: {
  question: ActivityQuestion;
  span: ActivitySpan;
  /** Newer rejected requests exist than those on the page. */
  isBehind: boolean;
}): VNode {
  const isEmpty = span.buckets.length === 0;
  return (
    <>
      <dl class="figures" data-part="figures">
        {kinds.map(({ kind, name, what }) => (
          <div>
            <dt>
              <span class={`swatch ${kind}`} /> {name}
            </dt>
            <dd>{totalOf(span, kind).toLocaleString("en")}</dd>
            <dd class="hint">{what}</dd>
          </div>
        ))}
      </dl>
      <div class="empty" data-part="empty" hidden={!isEmpty}>
        {isEmpty && <Nothing question={question} isUsed={span.isUsed} />}
      </div>
      <div class="chart" id="chart" hidden={isEmpty} />
      <Numbers question={question} span={span} />
      <p class="notice" data-part="behind" hidden={!isBehind}>
        {isBehind && (
          <>
            There are new rejected requests. <a href={pathOf("/activity", question)}>Show them</a>
          </>
        )}
      </p>
    </>
  );
}

function totalOf({ buckets }: ActivitySpan, kind: keyof Outcomes): number {
  return buckets.reduce((total, bucket) => total + bucket[kind], 0);
}

function Nothing({ question, isUsed }: { question: ActivityQuestion; isUsed: boolean }): VNode {
  if (!isUsed) {
    return (
      <>
        <h2>No request yet</h2>
        <p>
          <a href="/start">Send the first one</a>: it is counted here within seconds, whatever its
          outcome.
        </p>
      </>
    );
  }
  const longer = widths.slice(widths.indexOf(question.width) + 1);
  return (
    <>
      <h2>Quiet</h2>
      <p>
        No request {question.key === null ? "" : "with this key "}in the last{" "}
        {spans[question.width].name}.
      </p>
      {longer.length > 0 && (
        <p class="actions">
          {longer.map((width) => (
            <QuietLink to={pathOf("/activity", { ...question, width })}>
              Look at {spans[width].name}
            </QuietLink>
          ))}
        </p>
      )}
    </>
  );
}

function Numbers({
  question: { width },
  span: { start, buckets },
}: {
  question: ActivityQuestion;
  span: ActivitySpan;
}): VNode {
  const { ms, kept } = activityWidths[width];
  const first = width === "day" ? "Day (UTC)" : `From, for one ${width}`;
  return (
    <details hidden={buckets.length === 0}>
      <summary>Show as table</summary>
      <Table
        className="numbers"
        caption={`Requests by ${width}, newest first`}
        columns={[first, ...kinds.map(({ name }) => name)]}
      >
        <tbody data-part="numbers" data-start={start} data-width={ms} data-count={kept}>
          {buckets.toReversed().map((bucket) => (
            <tr>
              <td>
                <Start at={bucket.start} width={width} />
              </td>
              {kinds.map(({ kind }) => (
                <td>{bucket[kind]}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </Table>
    </details>
  );
}

/** Short, because there may be 180 of them. A day is one of UTC: the script leaves it as it is. */
function Start({ at, width }: { at: number; width: ActivityWidth }): VNode {
  const iso = new Date(at).toISOString();
  if (width === "day") return <>{iso.slice(0, 10)}</>;
  const minute = iso.slice(0, 16);
  return <time dateTime={`${minute}Z`}>{minute.replace("T", " ")} UTC</time>;
}
