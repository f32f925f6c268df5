/** The outcomes of the desk's requests over time: a table, from which a script draws the chart. */
import type { VNode } from "preact";
import { activityWidths, type ActivityWidth, type Bucket } from "../../domain/activity.ts";
import { QuietLink } from "../ui/components.tsx";
import { sumOf } from "../ui/sparkline.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { kinds, spans, widths } from "./labels.ts";
import { type ActivityQuestion, pathOf } from "./question.ts";

export interface ActivitySpan {
  /** The start of the oldest bucket, epoch milliseconds. */
  readonly start: number;
  /** Those with anything in them, oldest first. */
  readonly buckets: readonly Bucket[];
}

interface Shown {
  readonly question: ActivityQuestion;
  readonly span: ActivitySpan;
}

export function ChartSection({ question, span }: Shown): VNode {
  const isEmpty = span.buckets.length === 0;
  return (
    <section id="activity" aria-label={`Requests of the last ${spans[question.width].name}`}>
      <Legend {...span} />
      <div class="plot">
        <div class="empty" data-part="empty" hidden={!isEmpty}>
          {isEmpty && <Nothing question={question} />}
        </div>
        <div class="chart" id="chart" hidden={isEmpty} />
      </div>
      <Numbers question={question} span={span} />
    </section>
  );
}

/** The script makes each button show and hide its part of the chart. */
function Legend(span: ActivitySpan): VNode {
  return (
    <div class="legend" role="group" aria-label="Outcomes">
      {kinds.map(({ kind, name, what }) => (
        <button
          type="button"
          data-kind={kind}
          title={`${name}: ${what}`}
          aria-pressed="true"
          disabled
        >
          <span class={`swatch ${kind}`} />
          {name}
          <strong data-part={kind}>{sumOf(span.buckets, kind).toLocaleString("en")}</strong>
        </button>
      ))}
    </div>
  );
}

function Nothing({ question }: Pick<Shown, "question">): VNode {
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
            <QuietLink to={pathOf({ ...question, width })}>Look at {spans[width].name}</QuietLink>
          ))}
        </p>
      )}
    </>
  );
}

function Numbers({ question: { width }, span: { start, buckets } }: Shown): VNode {
  const { ms, kept } = activityWidths[width];
  const columns: Column[] = [
    { name: width === "day" ? "Day (UTC)" : `From, for one ${width}` },
    ...kinds.map(({ name }) => ({ name, isNumber: true })),
  ];
  return (
    <details hidden={buckets.length === 0}>
      <summary>Show as table</summary>
      <Table className="numbers" caption={`Requests by ${width}, newest first`} columns={columns}>
        <tbody data-part="numbers" data-start={start} data-width={ms} data-count={kept}>
          {buckets.toReversed().map((bucket) => (
            <tr>
              <td>
                <Start at={bucket.start} width={width} />
              </td>
              {kinds.map(({ kind }) => (
                <td class="number">{bucket[kind]}</td>
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
