/** `/activity`: the outcomes of the desk's requests, and why some were rejected. */
import { activityWidths, startOfBucket } from "../../domain/activity.ts";
import { newestSignal } from "../../domain/signal-chunks.ts";
import { findKey, offeredKeys } from "../keys/key-list.ts";
import { notFoundPage } from "../web/problems.tsx";
import { page } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import { memberPage, type MemberVisit, type Route } from "../web/visit.ts";
import type { ActivitySpan } from "./chart.tsx";
import { type ActivityAnswer, ActivityPage, LiveParts } from "./page.tsx";
import { type ActivityQuestion, ownerOf, readQuestion } from "./question.ts";
import type { RejectListing } from "./rejects-page.tsx";

/** Reasons per page. */
const PAGE = 25;
/** The latest requests of a reason: among others, and of one alone. */
const REQUESTS_SHOWN = 3;
const REQUESTS_SHOWN_ALONE = 20;

export function activityRoutes(services: ConsoleServices): Route[] {
  return [
    memberPage("/activity", (visit) => showPage(services, visit)),
    memberPage("/activity/live", (visit) => showLive(services, visit)),
  ];
}

async function showPage(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const question = await readQuestion(services, visit);
  if (question === null) return notFoundPage();
  const answer = await readAnswer(services, visit, question);
  const keys = await offeredKeys(services, visit, question.key?.id);
  return page(<ActivityPage {...answer} visit={visit} keys={keys} />);
}

/** For the script: what may have changed. */
async function showLive(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const question = await readQuestion(services, visit);
  if (question === null) return notFoundPage();
  return page(<LiveParts {...await readAnswer(services, visit, question)} />);
}

async function readAnswer(
  services: ConsoleServices,
  visit: MemberVisit,
  question: ActivityQuestion,
): Promise<ActivityAnswer> {
  const span = await readSpan(services, visit, question);
  const listing = await readRejects(services, visit, question);
  return { question, span, listing, now: visit.now };
}

async function readSpan(
  { activity, signals }: ConsoleServices,
  visit: MemberVisit,
  question: ActivityQuestion,
): Promise<ActivitySpan> {
  const { ms, kept } = activityWidths[question.width];
  const start = startOfBucket(visit.now, ms) - (kept - 1) * ms;
  const buckets = await activity.buckets(ownerOf(visit, question), question.width, start);
  const { deskId } = visit.member;
  const isUsed =
    buckets.length > 0 ||
    (await activity.buckets({ deskId, keyId: null }, "day", 0)).length > 0 ||
    (await newestSignal(signals, deskId)) !== null;
  return { start, buckets, isUsed };
}

async function readRejects(
  services: ConsoleServices,
  visit: MemberVisit,
  question: ActivityQuestion,
): Promise<RejectListing> {
  const found = await services.activity.rejects({
    ...question,
    ...ownerOf(visit, question),
    limit: PAGE + 1,
    requestsMax: question.reason === null ? REQUESTS_SHOWN : REQUESTS_SHOWN_ALONE,
  });
  const reasons = found.slice(0, PAGE);
  const older = found.length > PAGE ? (reasons.at(-1)?.latest[0]?.request_id ?? null) : null;
  const ids = new Set(reasons.flatMap(({ latest }) => latest.map(({ key_id }) => key_id)));
  const keys = await Promise.all([...ids].map((id) => findKey(services, visit, id)));
  return { reasons, keys: keys.filter((key) => key !== null), older };
}
