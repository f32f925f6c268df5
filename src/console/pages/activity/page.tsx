/** `/activity`: the outcomes of the desk's requests, and why some were rejected. */
import type { VNode } from "preact";
import {
  activityWidths,
  type BucketSpan,
  type DifferingTotal,
  REQUESTS_PER_REASON_KEPT,
} from "../../../domain/activity/activity.ts";
import type { ApiKey } from "../../../domain/key/key.ts";
import { assets } from "../../server/assets.ts";
import { forMembers, found, type Route } from "../../server/routes.ts";
import type { ConsoleServices } from "../../server/services.ts";
import type { MemberVisit } from "../../server/visit.ts";
import { KeyName } from "../../ui/components.tsx";
import { KeySelect } from "../../ui/forms.tsx";
import { Layout } from "../../ui/layout.tsx";
import { LiveParts, LiveStatus } from "../../ui/live.tsx";
import { startOfSpan } from "../../ui/sparkline.tsx";
import { Chip, FilterPopover, Toolbar } from "../../ui/toolbar.tsx";
import { counted } from "../../ui/words.ts";
import { findKey, offeredKeys } from "../keys/key-list.ts";
import { ChartSection } from "./chart.tsx";
import { QuestionForm } from "./filters.tsx";
import { spans, widths } from "./labels.ts";
import { type ActivityQuestion, pathOf, readQuestion } from "./question.ts";
import { RejectPage } from "./reject-page.tsx";
import { type RejectListing, RejectsSection } from "./rejects-list.tsx";

/** Reasons per page. */
const PAGE = 25;
/** Keys per reason. */
const KEYS_SHOWN = 10;

export const activityRoutes: readonly Route[] = [
  forMembers.page("/activity", async (services, visit) => {
    const { activity } = services;
    const { now } = visit;
    const question = await readQuestion(services, visit);
    const { key, width } = question;
    const buckets = await activity.buckets({
      deskId: visit.member.deskId,
      keyIds: key && [key.id],
      width,
      from: startOfSpan({ width, count: activityWidths[width].kept, now }),
    });
    const listing = await readRejects(services, visit, question);
    const keys = key === null ? await offeredKeys(services, visit, undefined) : [];
    return (
      <Layout
        title="Activity"
        visit={visit}
        actions={<LiveStatus />}
        scripts={[assets.live.path, assets.chart.path]}
      >
        <Toolbar>
          <Spans question={question} />
          <KeyFilter question={question} keys={keys} />
        </Toolbar>
        <LiveParts everyMs={spans[width].refreshMs}>
          <ChartSection question={question} buckets={buckets} now={now} />
          <RejectsSection question={question} listing={listing} now={now} />
        </LiveParts>
        <p class="actions">
          <DifferingLink total={await activity.differingTotal(visit.member.deskId, 0)} />
        </p>
      </Layout>
    );
  }),

  forMembers.page("/activity/rejects/:reason", async (services, visit) => {
    const { activity } = services;
    const { key } = await readQuestion(services, visit);
    const reason = visit.params["reason"] ?? "";
    const asked = { deskId: visit.member.deskId, keyId: key?.id ?? null, reason };
    const query = { ...asked, since: allDays(visit.now), limit: 1 };
    const rejects = found((await activity.rejects(query))[0]);
    const latest = await activity.rejected(asked, REQUESTS_PER_REASON_KEPT);
    const ids = [...rejects.keyIds.slice(0, KEYS_SHOWN), ...latest.map(({ key_id }) => key_id)];
    const keys = await findKeys(services, visit, ids);
    return <RejectPage {...{ visit, rejects, latest, keys }} narrowedTo={key} />;
  }),
];

function allDays(now: number): BucketSpan {
  return { width: "day", from: startOfSpan({ width: "day", count: activityWidths.day.kept, now }) };
}

async function readRejects(
  services: ConsoleServices,
  visit: MemberVisit,
  question: ActivityQuestion,
): Promise<RejectListing> {
  const rejects = await services.activity.rejects({
    ...question,
    deskId: visit.member.deskId,
    keyId: question.key?.id ?? null,
    since: allDays(visit.now),
    limit: PAGE + 1,
  });
  const reasons = rejects.slice(0, PAGE);
  const older = rejects.length > PAGE ? (reasons.at(-1)?.latestId ?? null) : null;
  const latest = reasons.flatMap(({ keyIds }) => keyIds.slice(0, 1));
  return { reasons, older, keys: await findKeys(services, visit, latest) };
}

async function findKeys(
  services: ConsoleServices,
  visit: MemberVisit,
  ids: readonly string[],
): Promise<ApiKey[]> {
  const keys = await Promise.all([...new Set(ids)].map((id) => findKey(services, visit, id)));
  return keys.filter((key) => key !== null);
}

function DifferingLink({ total }: { total: DifferingTotal | null }): VNode {
  if (total === null) {
    return <span class="soft">No duplicate differs from the stored signal.</span>;
  }
  return (
    <a href="/activity/differing">
      {counted(total.count, "duplicate")} with other content than the stored signal
    </a>
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
