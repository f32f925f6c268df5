/** `/signals`: the list, one signal, and exports. */
import type { VNode } from "preact";
import { ExportRefusedPage, type SignalListing, SignalListPage } from "./page.tsx";
import { SignalRows } from "./signal-table.tsx";
import { SignalDetailPage } from "./signal-page.tsx";
import { countRejected } from "../activity/rejected.tsx";
import { offeredKeys } from "../keys/key-list.ts";
import { newestSignalId, readChunks } from "../../../domain/signal/chunks.ts";
import { type FileFormat, fileFormats } from "../../../domain/signal/file.ts";
import type { StoredSignal } from "../../../domain/signal/stored-signal.ts";
import { page, seeOther } from "../../server/responses.ts";
import { type Answer, forMembers, found, type Route } from "../../server/routes.ts";
import { PageState } from "../../ui/live.tsx";
import { shorten } from "../../ui/words.ts";
import type { ConsoleServices } from "../../server/services.ts";
import {
  contentTypes,
  EXPORT_CHUNK,
  EXPORT_MINUTES_MAX,
  EXPORT_ROWS_MAX,
  ExportCut,
  exportStream,
} from "./export.ts";
import { type FilterInput, pathWith, readFilter } from "./filter.ts";
import { listWithDamaged } from "./listing.ts";
import { isStillSignedIn, type MemberVisit, readCursor } from "../../server/visit.ts";

const PAGE = 50;
const SYMBOLS_OFFERED = 50;
const EXPORT_MS_MAX = EXPORT_MINUTES_MAX * 60_000;

/** The defaults of a list for which nothing was read. */
const nothing: Omit<SignalListing, "input" | "keys" | "symbols"> = {
  find: null,
  found: { signals: [], older: null, searchedTo: null, done: 1 },
  newestId: "",
  isFirst: false,
  isLive: false,
  rejected: 0,
};

export const signalRoutes: readonly Route[] = [
  forMembers.page("/signals", showList),
  forMembers.page("/signals/newer", showNewer),
  forMembers.page("/signals/export", exportAll),
  forMembers.page("/signals/:id", showOne),
  forMembers.page("/signals/:id/metadata", sendMetadata),
];

async function showList(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const { searchParams } = visit.url;
  const find = searchParams.get("find") ?? "";
  if (find !== "") return showFound(services, visit, find);
  const input = await inputOf(services, visit);
  if (input.problems.length > 0) return refuseFilter(services, visit, input);
  const request = readRequest(visit, input);
  // Read first: what arrives in between is on the page, and not missed by the script.
  const newestId = await newestSignalId(services.signals, visit.member.deskId);
  const { signals, more, searchedTo } = await listWithDamaged(services.signals, request);
  const left =
    searchedTo === null
      ? 0
      : await services.signals.progress({ ...request, before: null }, searchedTo.id);
  const listed = { signals, older: more, searchedTo, done: 1 - left };
  const { to } = input.filter;
  const isFirst = request.before === null;
  const isLive = isFirst && (to === null || to > visit.now);
  const rejected = listed.signals.length === 0 ? await countRejected(services, visit) : 0;
  return listPage(services, visit, input, { found: listed, newestId, isFirst, isLive, rejected });
}

async function showFound(
  services: ConsoleServices,
  visit: MemberVisit,
  find: string,
): Promise<Response> {
  const { deskId } = visit.member;
  // Copied ids have spaces around them; those that begin with one are found as well.
  const exact = await services.signals.find(deskId, find);
  const signals = exact.length > 0 ? exact : await services.signals.find(deskId, find.trim());
  const [first] = signals;
  if (first !== undefined && signals.length === 1) return seeOther(`/signals/${first.id}`);
  const listed = { find, found: { ...nothing.found, signals } };
  const status = signals.length === 0 ? 404 : 200;
  return listPage(services, visit, readFilter(new URLSearchParams()), listed, status);
}

function refuseFilter(
  services: ConsoleServices,
  visit: MemberVisit,
  input: FilterInput,
): Promise<Response> {
  return listPage(services, visit, input, {}, 400);
}

/** With what the filter's form offers. */
async function listPage(
  services: ConsoleServices,
  visit: MemberVisit,
  input: FilterInput,
  listed: Partial<typeof nothing>,
  status = 200,
): Promise<Response> {
  const symbols = await services.signals.symbols(visit.member.deskId, SYMBOLS_OFFERED);
  const listing = {
    ...nothing,
    ...listed,
    input,
    keys: await offeredKeys(services, visit, input.typed.key),
    // Long ones would make the page long.
    symbols: symbols.filter((symbol) => shorten(symbol) === symbol),
  };
  return page(<SignalListPage {...listing} />, visit, status);
}

/** Rows for the script: those that are newer than its newest, or the newest of them. */
async function showNewer(services: ConsoleServices, visit: MemberVisit): Promise<Answer> {
  const input = await inputOf(services, visit);
  if (input.problems.length > 0) return refuseFilter(services, visit, input);
  const newestId = await newestSignalId(services.signals, visit.member.deskId);
  const after = readCursor(visit.url, "after");
  const query = { ...readRequest(visit, input), after };
  const { signals, searchedTo } = await listWithDamaged(services.signals, query);
  return (
    <>
      <PageState />
      <table>
        <SignalRows signals={signals} newestId={newestId} isCut={searchedTo !== null} />
      </table>
    </>
  );
}

async function showOne(services: ConsoleServices, visit: MemberVisit): Promise<VNode> {
  const signal = await findSignal(services, visit);
  const repeats = await services.activity.repeatsOf(visit.member.deskId, signal.id);
  const { publicUrl } = services;
  return <SignalDetailPage {...{ signal, repeats, publicUrl }} />;
}

async function sendMetadata(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const { id, metadata } = await findSignal(services, visit);
  return file(found(metadata), "application/json", `${id}.json`);
}

async function findSignal(
  { signals }: ConsoleServices,
  { member, params }: MemberVisit,
): Promise<StoredSignal> {
  return found(await signals.get(member.deskId, params["id"] ?? ""));
}

async function exportAll(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const { searchParams } = visit.url;
  const format = found(fileFormats.find((name) => name === searchParams.get("format")));
  const input = await inputOf(services, visit);
  if (input.problems.length > 0) return refuseFilter(services, visit, input);
  const { deskId, desk } = visit.member;
  const slot = services.exports.take(visit.member);
  if (slot.problem !== null) {
    const back = pathWith("/signals", input);
    return page(<ExportRefusedPage problem={slot.problem} back={back} />, visit, 429);
  }
  const { filter } = input;
  const query = { deskId, filter, order: "newest", limit: EXPORT_ROWS_MAX } as const;
  const chunks = readChunks(services.signals, query, EXPORT_CHUNK);
  const stream = exportStream(chunks, format, {
    reasonToCut: () => reasonToCut(services, visit),
    stopping: services.exports.stopping,
    onEnd: (error) => {
      slot.giveBack();
      logEnd(services, visit, error);
    },
  });
  return file(stream, contentTypes[format], fileName(desk, visit, format));
}

async function reasonToCut(services: ConsoleServices, visit: MemberVisit): Promise<string | null> {
  if (!(await isStillSignedIn(services, visit))) return "its session has ended";
  return services.now() - visit.now > EXPORT_MS_MAX ? "it took too long" : null;
}

function logEnd({ log }: ConsoleServices, { requestId }: MemberVisit, error: unknown): void {
  if (error instanceof ExportCut) {
    log.info({ request_id: requestId, reason: error.message }, "an export was cut");
  } else if (error !== undefined) {
    log.error({ request_id: requestId, err: error }, "an export failed");
  }
}

function fileName(desk: string, { now }: MemberVisit, format: FileFormat): string {
  const moment = new Date(now).toISOString().slice(0, 19).replaceAll(":", "");
  return `signals-${desk}-${moment}Z.${format}`;
}

/** Browsers save it, and never show it as a page. */
function file(body: BodyInit, type: string, name: string): Response {
  return new Response(body, {
    headers: {
      "Content-Type": type,
      "Content-Disposition": `attachment; filename="${name}"`,
      "Cache-Control": "no-store",
    },
  });
}

/** With the ids of the signals that have duplicates that differ, if only those are wanted. */
async function inputOf(
  { activity }: ConsoleServices,
  { member: { deskId }, url }: MemberVisit,
): Promise<FilterInput> {
  const input = readFilter(url.searchParams);
  if (input.typed.duplicates === undefined) return input;
  const ids = await activity.differingIds(deskId);
  return { ...input, filter: { ...input.filter, ids } };
}

function readRequest({ member: { deskId }, url }: MemberVisit, { filter }: FilterInput) {
  const before = readCursor(url, "before");
  return { deskId, filter, before, order: "newest", limit: PAGE } as const;
}
