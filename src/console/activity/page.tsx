/** The outcomes of the desk's requests, and the rejected ones. */
import type { VNode } from "preact";
import type { ApiKey } from "../../domain/key.ts";
import { KeyName } from "../ui/components.tsx";
import { KeySelect } from "../ui/forms.tsx";
import { Layout } from "../ui/layout.tsx";
import { LiveParts, LiveStatus } from "../ui/live.tsx";
import { Chip, FilterPopover, Toolbar } from "../ui/toolbar.tsx";
import { assets } from "../web/assets.ts";
import type { MemberVisit } from "../web/visit.ts";
import { type ActivitySpan, ChartSection } from "./chart.tsx";
import { QuestionForm } from "./filters.tsx";
import { spans, widths } from "./labels.ts";
import { type ActivityQuestion, pathOf } from "./question.ts";
import { type RejectListing, RejectsSection } from "./rejects-list.tsx";

export function ActivityPage({
  visit,
  question,
  span,
  listing,
  keys,
}: {
  visit: MemberVisit;
  question: ActivityQuestion;
  span: ActivitySpan;
  listing: RejectListing;
  /** To choose from. */
  keys: readonly ApiKey[];
}): VNode {
  return (
    <Layout
      title="Activity"
      visit={visit}
      actions={<LiveStatus />}
      scripts={[assets.uplot.path, assets.live.path, assets.activity.path]}
    >
      <Toolbar>
        <Spans question={question} />
        <KeyFilter question={question} keys={keys} />
      </Toolbar>
      <LiveParts everyMs={spans[question.width].refreshMs}>
        <ChartSection question={question} span={span} />
        <RejectsSection question={question} listing={listing} now={visit.now} />
      </LiveParts>
    </Layout>
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
          {spans[width].name}
        </a>
      ))}
    </nav>
  );
}

function KeyFilter({
  question,
  keys,
}: {
  question: ActivityQuestion;
  keys: readonly ApiKey[];
}): VNode | null {
  const { key } = question;
  if (key !== null) {
    return (
      <Chip name="Key" without={pathOf({ ...question, key: null, before: null })}>
        <KeyName {...key} isShort />
      </Chip>
    );
  }
  if (keys.length < 2) return null;
  return (
    <FilterPopover name="Key">
      <QuestionForm question={question} fields={["key"]}>
        <label for="key">Key</label>
        <KeySelect keys={keys} chosen={undefined} none="all" />
      </QuestionForm>
    </FilterPopover>
  );
}
