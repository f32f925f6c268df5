/** `/signals`: the list, one signal, and exports. */
import { ExportRefusedPage, SignalListPage } from "./page.tsx";
import { SignalRows } from "./signal-table.tsx";
import { SignalDetailPage } from "./signal-page.tsx";
import { countRejected } from "../activity/rejected.tsx";
import { offeredKeys } from "../keys/key-list.ts";
import { newestSignalId, readChunks } from "../../domain/signal-chunks.ts";
import { type FileFormat, fileFormats } from "../../domain/signal-file.ts";
import { notFoundPage } from "../web/problems.tsx";
import { page, seeOther } from "../web/responses.ts";
import { shorten } from "../ui/words.ts";
import type { ConsoleServices } from "../web/services.ts";
import {
  contentTypes,
  EXPORT_CHUNK,
  EXPORT_MINUTES_MAX,
  EXPORT_ROWS_MAX,
  ExportCut,
  ExportSlots,
  exportStream,
} from "./export.ts";
import { type FilterInput, pathWith, readFilter } from "./filter.ts";
import { readSignalPage, type SignalPageQuery } from "./listing.ts";
import {
  isStillSignedIn,
  memberPage,
  type MemberVisit,
  readCursor,
  type Route,
} from "../web/visit.ts";

const PAGE = 50;
const SYMBOLS_OFFERED = 50;
const EXPORT_MS_MAX = EXPORT_MINUTES_MAX * 60_000;

const nothing = { signals: [], older: null, newer: null, searchedTo: null };

export function signalRoutes(services: ConsoleServices): Route[] {
  const slots = new ExportSlots();
  return [
    memberPage("/signals", (visit) => showList(services, visit)),
    memberPage("/signals/newer", (visit) => showNewer(services, visit)),
    memberPage("/signals/export", (visit) => exportAll(services, slots, visit)),
    memberPage("/signals/:id", (visit) => showOne(services, visit)),
    memberPage("/signals/:id/metadata", (visit) => sendMetadata(services, visit)),
  ];
}

async function showList(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const { searchParams } = visit.url;
  const find = searchParams.get("find") ?? "";
  if (find !== "") return showFound(services, visit, find);
  const input = readFilter(searchParams);
  if (input.problems.length > 0) return refuseFilter(services, visit, input);
  const request = readRequest(visit, input);
  // Read first: what arrives in between is on the page, and not missed by the script.
  const newestId = await newestSignalId(services.signals, visit.member.deskId);
  const found = await readSignalPage(services.signals, request);
  // There is nothing newer: the first page is the one that is kept up to date.
  if (request.after !== null && found.newer === null) return seeOther(pathWith("/signals", input));
  const isLive = request.before === null && request.after === null;
  const offers = await readOffers(services, visit, input);
  const rejected = found.signals.length === 0 ? await countRejected(services, visit) : 0;
  const listing = { input, find: null, found, newestId, isLive, rejected, ...offers };
  return page(<SignalListPage visit={visit} listing={listing} />);
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
  const input = readFilter(new URLSearchParams());
  const offers = await readOffers(services, visit, input);
  const found = { ...nothing, signals };
  const listing = { input, find, found, newestId: "", isLive: false, rejected: 0, ...offers };
  return page(<SignalListPage visit={visit} listing={listing} />, signals.length === 0 ? 404 : 200);
}

async function refuseFilter(
  services: ConsoleServices,
  visit: MemberVisit,
  input: FilterInput,
): Promise<Response> {
  const offers = await readOffers(services, visit, input);
  const listing = {
    input,
    find: null,
    found: nothing,
    newestId: "",
    isLive: false,
    rejected: 0,
    ...offers,
  };
  return page(<SignalListPage visit={visit} listing={listing} />, 400);
}

/** What the filter's form offers. */
async function readOffers(services: ConsoleServices, visit: MemberVisit, { typed }: FilterInput) {
  const symbols = await services.signals.symbols(visit.member.deskId, SYMBOLS_OFFERED);
  return {
    keys: await offeredKeys(services, visit, typed.key),
    // Long ones would make the page long.
    symbols: symbols.filter((symbol) => shorten(symbol) === symbol),
  };
}

/** Rows for the script: those that are newer than its newest, or the newest of them. */
async function showNewer(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const input = readFilter(visit.url.searchParams);
  if (input.problems.length > 0) return refuseFilter(services, visit, input);
  const newestId = await newestSignalId(services.signals, visit.member.deskId);
  const query = { ...readRequest(visit, input), order: "newest" } as const;
  const { signals, searchedTo } = await services.signals.list(query);
  return page(
    <table>
      <SignalRows
        signals={signals}
        newestId={newestId}
        isCut={searchedTo !== null}
        now={visit.now}
      />
    </table>,
  );
}

async function showOne(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const signal = await services.signals.get(visit.member.deskId, visit.params["id"] ?? "");
  if (signal === null) return notFoundPage();
  const repeats = await services.activity.repeatsOf(visit.member.deskId, signal.id);
  return page(
    <SignalDetailPage
      visit={visit}
      signal={signal}
      repeats={repeats}
      publicUrl={services.publicUrl}
    />,
  );
}

async function sendMetadata(services: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const signal = await services.signals.get(visit.member.deskId, visit.params["id"] ?? "");
  if (signal === null || signal.metadata === null) return notFoundPage();
  return file(signal.metadata, "application/json", `${signal.id}.json`);
}

async function exportAll(
  services: ConsoleServices,
  slots: ExportSlots,
  visit: MemberVisit,
): Promise<Response> {
  const { searchParams } = visit.url;
  const format = fileFormats.find((name) => name === searchParams.get("format"));
  if (format === undefined) return notFoundPage();
  const input = readFilter(searchParams);
  if (input.problems.length > 0) return refuseFilter(services, visit, input);
  const { deskId, desk } = visit.member;
  const slot = slots.take(visit.member);
  if (slot.problem !== null) {
    const back = pathWith("/signals", input);
    return page(<ExportRefusedPage visit={visit} problem={slot.problem} back={back} />, 429);
  }
  const { filter } = input;
  const query = { deskId, filter, order: "newest", limit: EXPORT_ROWS_MAX } as const;
  const chunks = readChunks(services.signals, query, EXPORT_CHUNK);
  const stream = exportStream(chunks, format, {
    reasonToCut: () => reasonToCut(services, visit),
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

function readRequest({ member, url }: MemberVisit, { filter }: FilterInput): SignalPageQuery {
  const before = readCursor(url, "before");
  const after = readCursor(url, "after");
  return { deskId: member.deskId, filter, before, after, limit: PAGE };
}
