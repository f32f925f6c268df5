/** The outcomes of the desk's requests over time: as a chart, and as a table. */
import type { VNode } from "preact";
import {
  activityWidths,
  type ActivityWidth,
  type Bucket,
} from "../../../domain/activity/activity.ts";
import { QuietLink } from "../../ui/components.tsx";
import { Chart } from "../../ui/chart.tsx";
import { sumOf } from "../../ui/sparkline.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { kinds, spans, widths } from "./labels.ts";
import { type ActivityQuestion, pathOf } from "./question.ts";

interface Shown {
  readonly question: ActivityQuestion;
  /** Those of the span with anything in them, oldest first. */
  readonly buckets: readonly Bucket[];
}

export function ChartSection({ question, buckets }: Shown): VNode {
  const label = `Requests of the last ${spans[question.width].name}`;
  const { width } = question;
  return (
    <section id="activity" aria-label={label}>
      <Legend question={question} buckets={buckets} />
      <div class="plot" data-part="chart">
        {buckets.length === 0 ? (
          <div class="empty">
            <Nothing question={question} />
          </div>
        ) : (
          <Chart
            width={width}
            count={activityWidths[width].kept}
            buckets={buckets}
            hidden={question.hidden}
            label={label}
            hasLegend={false}
          />
        )}
      </div>
      <Numbers question={question} buckets={buckets} />
    </section>
  );
}

/** Each link shows or hides its part of the chart. */
function Legend({ question, buckets }: Shown): VNode {
  const { hidden } = question;
  return (
    <nav class="legend" aria-label="Outcomes">
      {kinds.map(({ kind, name, what }) => {
        const isHidden = hidden.includes(kind);
        const others = hidden.filter((other) => other !== kind);
        return (
          <a
            href={pathOf({ ...question, hidden: isHidden ? others : [...hidden, kind] })}
            class={isHidden ? "hidden" : undefined}
            title={`${name}: ${what}`}
          >
            <span class="unseen">{isHidden ? "Show" : "Hide"} </span>
            <span class={`swatch ${kind}`} />
            {name} <strong data-part={kind}>{sumOf(buckets, kind).toLocaleString("en")}</strong>
          </a>
        );
      })}
    </nav>
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

function Numbers({ question: { width }, buckets }: Shown): VNode {
  const columns: Column<Bucket>[] = [
    {
      name: width === "day" ? "Day (UTC)" : `From, for one ${width}`,
      cell: ({ start }) => <Start at={start} width={width} />,
      phone: "more",
    },
    ...kinds.map(({ kind, name }): Column<Bucket> => ({
      name,
      cell: (bucket) => bucket[kind],
      isNumber: true,
      phone: "more",
    })),
  ];
  return (
    <details>
      <summary>Show as table</summary>
      <List
        className="numbers"
        caption={`Requests by ${width}, newest first`}
        columns={columns}
        items={buckets.toReversed()}
        body={{ "data-part": "numbers" }}
      />
    </details>
  );
}

/** Short, because there may be 180 of them. A day is one of UTC: the script leaves it as it is. */
function Start({ at, width }: { at: number; width: ActivityWidth }): VNode {
  const iso = new Date(at).toISOString();
  if (width === "day") return <>{iso.slice(0, 10)}</>;
  const minute = iso.slice(0, 16);
  return <time dateTime={`${minute}Z`}>{minute.replace("T", " ")}</time>;
}
