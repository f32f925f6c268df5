/** `/activity`: the outcomes of the desk's requests, and why some were rejected. */
import type { VNode } from "preact";
import {
  activityWidths,
  type BucketSpan,
  type DifferingTotal,
  REQUESTS_PER_REASON_KEPT,
} from "../../../domain/activity/activity.ts";
import { assets } from "../../server/assets.ts";
import { forMembers, found, type Route } from "../../server/routes.ts";
import type { ConsoleServices } from "../../server/services.ts";
import type { MemberVisit } from "../../server/visit.ts";
import { Layout } from "../../ui/layout.tsx";
import { LiveParts, LiveStatus } from "../../ui/live.tsx";
import { startOfSpan } from "../../ui/sparkline.tsx";
import { Toolbar } from "../../ui/toolbar.tsx";
import { plural } from "../../../lib/text/words.ts";
import { findKey, offeredKeys } from "../keys/key-list.ts";
import { ChartSection } from "./chart.tsx";
import { Filters, keyFilter } from "./filters.tsx";
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
    const question = await readQuestion(services, visit);
    const { key, width } = question;
    const buckets = await activity.buckets({
      deskId: visit.member.deskId,
      keyIds: key && [key.id],
      width,
      from: startOfSpan({ width, count: activityWidths[width].kept, now: visit.now }),
    });
    const listing = await readRejects(services, visit, question);
    const keys = await offeredKeys(services, visit, key?.id);
    return (
      <Layout
        title="Activity"
        actions={<LiveStatus />}
        scripts={[assets.live.path, assets.chart.path]}
      >
        <Toolbar>
          <Spans question={question} />
          {(keys.length > 1 || key !== null) && (
            <Filters question={question} filters={[keyFilter(question, keys)]} name="Key" />
          )}
        </Toolbar>
        <LiveParts everyMs={spans[width].refreshMs}>
          <ChartSection question={question} buckets={buckets} />
          <RejectsSection question={question} listing={listing} />
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
    const { keeps_sent: isKept } = await services.registry.getDesk(visit.member.deskId);
    const keys = await Promise.all([...new Set(ids)].map((id) => findKey(services, visit, id)));
    return (
      <RejectPage
        {...{ rejects, latest, isKept }}
        keys={keys.filter((one) => one !== null)}
        narrowedTo={key}
      />
    );
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
  const listed = reasons.map(async (one) => ({
    ...one,
    latestKey: await findKey(services, visit, one.keyIds[0] ?? ""),
  }));
  return { reasons: await Promise.all(listed), older };
}

function DifferingLink({ total }: { total: DifferingTotal | null }): VNode {
  if (total === null) {
    return <span class="soft">No duplicate differs from the stored signal.</span>;
  }
  return (
    <a href="/activity/differing">
      {plural(total.count, "duplicate")} with other content than the stored signal
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
