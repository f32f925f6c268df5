/** The outcomes of the desk's requests, and the rejected ones. */
import type { VNode } from "preact";
import type { ApiKey } from "../../domain/key.ts";
import { KeySelect } from "../ui/forms.tsx";
import { Layout } from "../ui/layout.tsx";
import { LiveStatus } from "../ui/live-status.tsx";
import { assets } from "../web/assets.ts";
import type { MemberVisit } from "../web/visit.ts";
import { type ActivitySpan, ChartParts } from "./chart.tsx";
import { spans, widths } from "./labels.ts";
import { type ActivityQuestion, pathOf } from "./question.ts";
import { type RejectListing, RejectsSection } from "./rejects-page.tsx";

export interface ActivityAnswer {
  readonly question: ActivityQuestion;
  readonly span: ActivitySpan;
  readonly listing: RejectListing;
  readonly now: number;
}

export function ActivityPage({
  visit,
  keys,
  ...answer
}: ActivityAnswer & {
  visit: MemberVisit;
  /** To choose from. */
  keys: readonly ApiKey[];
}): VNode {
  const { question } = answer;
  const { refreshMs } = spans[question.width];
  return (
    <Layout
      title="Activity"
      visit={visit}
      place="/activity"
      actions={<LiveStatus />}
      scripts={[assets.uplot.path, assets.live.path, assets.activity.path]}
      styles={[assets.uplotStyle.path]}
    >
      <div class="tools">
        <Spans question={question} />
        <KeyForm question={question} keys={keys} />
      </div>
      <div id="live" data-path={pathOf(question, "/activity/live")} data-every={refreshMs}>
        <LiveParts {...answer} />
      </div>
    </Layout>
  );
}

/** The script asks for these, too, and replaces each `data-part`. */
export function LiveParts({ question, span, listing, now }: ActivityAnswer): VNode {
  return (
    <>
      <section id="activity" aria-label={`Requests of the last ${spans[question.width].name}`}>
        <ChartParts question={question} span={span} />
      </section>
      <RejectsSection question={question} listing={listing} now={now} />
    </>
  );
}

function Spans({ question }: { question: ActivityQuestion }): VNode {
  return (
    <nav class="segments" aria-label="Span">
      {widths.map((width) => (
        <a
          href={pathOf({ ...question, width })}
          aria-current={width === question.width ? "page" : undefined}
        >
          {spans[width].name} <small>by {width}</small>
        </a>
      ))}
    </nav>
  );
}

function KeyForm({
  question: { width, key },
  keys,
}: {
  question: ActivityQuestion;
  keys: readonly ApiKey[];
}): VNode | null {
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
