/** `/activity`: the outcomes of the desk's requests, and why some were rejected. */
import type { VNode } from "preact";
import { activityWidths, REQUESTS_PER_REASON_KEPT, startOfBucket } from "../../domain/activity.ts";
import type { ApiKey } from "../../domain/key.ts";
import { findKey, offeredKeys } from "../keys/key-list.ts";
import { forMembers, found, type Route } from "../web/routes.ts";
import type { ConsoleServices } from "../web/services.ts";
import type { MemberVisit } from "../web/visit.ts";
import type { ActivitySpan } from "./chart.tsx";
import { ActivityPage } from "./page.tsx";
import { type ActivityQuestion, ownerOf, readQuestion } from "./question.ts";
import { RejectPage } from "./reject-page.tsx";
import type { RejectListing } from "./rejects-list.tsx";

/** Reasons per page. */
const PAGE = 25;
/** Keys per reason. */
const KEYS_SHOWN = 10;

export const activityRoutes: readonly Route[] = [
  forMembers.page("/activity", showPage),
  forMembers.page("/activity/rejects/:reason", showReason),
];

async function showPage(services: ConsoleServices, visit: MemberVisit): Promise<VNode> {
  const question = await readQuestion(services, visit);
  const span = await readSpan(services, visit, question);
  const listing = await readRejects(services, visit, question);
  const keys = question.key === null ? await offeredKeys(services, visit, undefined) : [];
  return <ActivityPage {...{ visit, question, span, listing, keys }} />;
}

async function readSpan(
  { activity }: ConsoleServices,
  visit: MemberVisit,
  question: ActivityQuestion,
): Promise<ActivitySpan> {
  const { ms, kept } = activityWidths[question.width];
  const start = startOfBucket(visit.now, ms) - (kept - 1) * ms;
  const buckets = await activity.buckets(ownerOf(visit, question), question.width, start);
  return { start, buckets };
}

async function readRejects(
  services: ConsoleServices,
  visit: MemberVisit,
  question: ActivityQuestion,
): Promise<RejectListing> {
  const rejects = await services.activity.rejects({
    ...question,
    ...ownerOf(visit, question),
    limit: PAGE + 1,
    requestsMax: 1,
  });
  const reasons = rejects.slice(0, PAGE);
  const older = rejects.length > PAGE ? (reasons.at(-1)?.latest[0]?.request_id ?? null) : null;
  const latest = reasons.flatMap(({ keyIds }) => keyIds.slice(0, 1));
  return { reasons, older, keys: await findKeys(services, visit, latest) };
}

async function showReason(services: ConsoleServices, visit: MemberVisit): Promise<VNode> {
  const question = await readQuestion(services, visit);
  const reasons = await services.activity.rejects({
    ...ownerOf(visit, question),
    reason: visit.params["reason"] ?? "",
    limit: 1,
    requestsMax: REQUESTS_PER_REASON_KEPT,
  });
  const rejects = found(reasons[0]);
  const latest = rejects.latest.map(({ key_id }) => key_id);
  const ids = [...rejects.keyIds.slice(0, KEYS_SHOWN), ...latest];
  const keys = await findKeys(services, visit, ids);
  return <RejectPage visit={visit} rejects={rejects} keys={keys} narrowedTo={question.key} />;
}

async function findKeys(
  services: ConsoleServices,
  visit: MemberVisit,
  ids: readonly string[],
): Promise<ApiKey[]> {
  const keys = await Promise.all([...new Set(ids)].map((id) => findKey(services, visit, id)));
  return keys.filter((key) => key !== null);
}
