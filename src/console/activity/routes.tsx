/** `/activity`: the outcomes of the desk's requests, and why some were rejected. */
import {
  type ActivityOwner,
  type ActivityWidth,
  activityWidths,
  startOfBucket,
} from "../../domain/activity.ts";
import { findKey, offeredKeys } from "../keys/key-list.ts";
import { newestSignal } from "../../domain/signal-chunks.ts";
import { ActivityPage, type ActivityQuestion, type ActivitySpan, ChartParts } from "./page.tsx";
import type { RejectListing } from "./rejects-page.tsx";
import { notFoundPage } from "../web/problems.tsx";
import { page } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import { memberPage, type MemberVisit, type Route } from "../web/visit.ts";

const PAGE = 50;
const REQUEST_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function activityRoutes(services: ConsoleServices): Route[] {
  return [
    memberPage("/activity", (visit) => showPage(services, visit)),
    memberPage("/activity/chart", (visit) => showChart(services, visit)),
  ];
}

async function showPage(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const question = await readQuestion(services, visit);
  if (question === null) return notFoundPage();
  const before = readCursor(visit, "before");
  const span = await readSpan(services, visit, question);
  const rejects = await readRejects(services, visit, question, before);
  return page(<ActivityPage {...{ visit, question, span, rejects }} />);
}

/** For the script: what has changed since it asked before. */
async function showChart(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const question = await readQuestion(services, visit);
  if (question === null) return notFoundPage();
  const span = await readSpan(services, visit, question);
  const [latest] = await services.activity.rejects(ownerOf(visit, question), null, 1);
  const newest = latest?.request_id ?? "";
  const isBehind = newest > (visit.url.searchParams.get("newest") ?? newest);
  return page(<ChartParts {...{ question, span, isBehind }} />);
}

/** Null for a key that is not the desk's. */
async function readQuestion(
  services: ConsoleServices,
  visit: MemberVisit,
): Promise<ActivityQuestion | null> {
  const { url } = visit;
  const per = url.searchParams.get("per") ?? "";
  const width = isWidth(per) ? per : "minute";
  const id = url.searchParams.get("key") ?? "";
  const key = id === "" ? null : await findKey(services, visit, id);
  if (id !== "" && key === null) return null;
  return { width, key, keys: await offeredKeys(services, visit, key?.id) };
}

function isWidth(text: string): text is ActivityWidth {
  return Object.hasOwn(activityWidths, text);
}

function ownerOf({ member }: MemberVisit, { key }: Pick<ActivityQuestion, "key">): ActivityOwner {
  return { deskId: member.deskId, keyId: key?.id ?? null };
}

async function readSpan(
  { activity, signals }: ConsoleServices,
  visit: MemberVisit,
  question: ActivityQuestion,
): Promise<ActivitySpan> {
  const { ms, kept } = activityWidths[question.width];
  const start = startOfBucket(visit.now, ms) - (kept - 1) * ms;
  const buckets = await activity.buckets(ownerOf(visit, question), question.width, start);
  const isUsed =
    buckets.length > 0 ||
    (await activity.buckets(ownerOf(visit, { key: null }), "day", 0)).length > 0 ||
    (await newestSignal(signals, visit.member.deskId)) !== null;
  return { start, buckets, isUsed };
}

async function readRejects(
  services: ConsoleServices,
  visit: MemberVisit,
  question: ActivityQuestion,
  before: string | null,
): Promise<RejectListing> {
  const found = await services.activity.rejects(ownerOf(visit, question), before, PAGE + 1);
  const rejects = found.slice(0, PAGE);
  const last = rejects.at(-1);
  const older = found.length <= PAGE || last === undefined ? null : last.request_id;
  const ids = new Set(rejects.map(({ key_id }) => key_id));
  const keys = await Promise.all([...ids].map((id) => findKey(services, visit, id)));
  return {
    rejects,
    keys: keys.filter((key) => key !== null),
    older,
    isFirst: before === null,
  };
}

/** Null for an invalid cursor: the newest page. */
function readCursor({ url }: MemberVisit, name: string): string | null {
  const text = url.searchParams.get(name) ?? "";
  return REQUEST_ID.test(text) ? text : null;
}
