/** The console's interface: pages for members, nothing that programs use. */
import type { Context, Elysia } from "elysia";
import type { Logger } from "pino";
import { withClientAddress } from "../domain/client.ts";
import { AppError, errorCatalogue } from "../domain/errors.ts";
import { createApp, targetOf } from "../net/routes.ts";
import { findAsset } from "./assets.ts";
import { readCookies } from "./cookies.ts";
import { csrfTokenOf, isForged } from "./forgery.ts";
import { forbiddenPage, failurePage, notFoundPage } from "./pages/problems.tsx";
import { methodNotAllowed, page, securityHeaders, seeOther } from "./responses.ts";
import { randomToken, type Sessions } from "./sessions.ts";
import { cookieNames, type MemberVisit, type Route, type Visit } from "./visit.ts";
import type { WriteLimit } from "./write-limit.ts";

export interface ConsoleInterface {
  readonly sessions: Sessions;
  /** For each form that a member sends. */
  readonly writes: WriteLimit;
  readonly routes: readonly Route[];
  /** What browsers call us, such as `https://console.example.com`. */
  readonly ownOrigin: () => string;
  /** Throws `https_required` for a request that travelled in the clear. */
  readonly requireHttps: (headers: Headers, peer: string | null) => void;
  /** Of the client itself where a trusted proxy tells it. */
  readonly clientAddress: (headers: Headers, peer: string | null) => string;
  /** A bounded read; throws `payload_too_large`. */
  readonly readBody: (request: Request) => Promise<Uint8Array>;
  readonly log: Logger;
  readonly now: () => number;
  /** A retired listener's answers are its connections' last. */
  readonly listener: { isRetired: boolean };
}

interface Arrival {
  readonly request: Request;
  readonly params: Record<string, string>;
  readonly server: Context["server"];
}

export function createConsole(console: ConsoleInterface): Elysia {
  const app = createApp((request) => answer(console, request, async () => notFoundPage()));
  app.onError(({ error, request }) => answer(console, request, () => Promise.reject(error)));
  for (const route of console.routes) {
    app.route(
      route.method,
      route.path,
      ({ request, params, server }) =>
        answer(console, request, (requestId) =>
          serve(console, route, { request, params, server }, requestId),
        ),
      { parse: "none" },
    );
    // Elysia would answer it by the handler of GET, which may show a key once, or begin an export.
    if (route.method === "GET") {
      app.route("HEAD", route.path, ({ request }) =>
        answer(console, request, async () => methodNotAllowed(methodsOf(console, route.path))),
      );
    }
  }
  app.get("/assets/:name", ({ request, params }) =>
    answer(
      console,
      request,
      async () => findAsset(`/assets/${params.name}`, request.headers) ?? notFoundPage(),
    ),
  );
  return app;
}

function methodsOf({ routes }: ConsoleInterface, path: string): Route["method"][] {
  return routes.filter((route) => route.path === path).map(({ method }) => method);
}

/** Who it is and what was sent, and the page that it is for. */
async function serve(
  console: ConsoleInterface,
  route: Route,
  { request, params, server }: Arrival,
  requestId: string,
): Promise<Response> {
  const { headers } = request;
  const peer = server?.requestIP(request)?.address ?? null;
  console.requireHttps(headers, peer);
  const cookies = readCookies(headers);
  const now = console.now();
  const token = cookies.get(cookieNames.session);
  const member = token === null ? null : console.sessions.find(token, now);
  if (token !== null && member === null) cookies.clear(cookieNames.session);
  const secret = member === null || token === null ? visitorOf(cookies) : token;
  const csrfToken = csrfTokenOf(secret);
  const form = request.method === "POST" ? await readForm(console, request) : new URLSearchParams();
  const isTheirs =
    request.method !== "POST" || !isForged(request, form, csrfToken, console.ownOrigin());
  const visit: Visit = {
    request,
    url: new URL(targetOf(request), console.ownOrigin()),
    params,
    form,
    csrfToken,
    requestId,
    address: console.clientAddress(headers, peer),
    now,
    member,
    cookies,
  };
  // After the look at its token: another site's forms use up nothing.
  if (request.method === "POST" && isTheirs && member !== null) {
    console.writes.take(member, performance.now());
  }
  const response = isTheirs
    ? await withClientAddress(visit.address, () => handle(route, visit))
    : forbiddenPage();
  cookies.apply(response.headers);
  return response;
}

function handle(route: Route, visit: Visit): Response | Promise<Response> {
  if (route.access === "public") return route.handle(visit);
  if (visit.member === null) return seeOther(signInPath(visit));
  return route.handle(visit as MemberVisit);
}

/** After signing in they come back to the page that they asked for. */
function signInPath({ request, url }: Visit): string {
  const isPage = request.method === "GET" && url.pathname !== "/";
  return isPage ? `/sign-in?next=${encodeURIComponent(url.pathname + url.search)}` : "/sign-in";
}

function visitorOf(cookies: ReturnType<typeof readCookies>): string {
  const known = cookies.get(cookieNames.visitor);
  if (known !== null && known.length === 43) return known;
  const fresh = randomToken();
  cookies.set(cookieNames.visitor, fresh, null);
  return fresh;
}

async function readForm(console: ConsoleInterface, request: Request): Promise<URLSearchParams> {
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/x-www-form-urlencoded") throw new AppError("unsupported_media_type");
  return new URLSearchParams(new TextDecoder().decode(await console.readBody(request)));
}

async function answer(
  console: ConsoleInterface,
  request: Request,
  respond: (requestId: string) => Promise<Response>,
): Promise<Response> {
  const requestId = Bun.randomUUIDv7();
  let response: Response;
  try {
    response = await respond(requestId);
  } catch (error) {
    if (!(error instanceof AppError)) {
      console.log.error({ request_id: requestId, err: error }, "internal error in the console");
    }
    response = page(failurePage(error, requestId), statusOf(error));
    const retryAfterS = error instanceof AppError ? error.detail.retryAfterS : undefined;
    if (retryAfterS !== undefined) response.headers.set("Retry-After", String(retryAfterS));
  }
  for (const [name, value] of Object.entries(securityHeaders)) response.headers.set(name, value);
  response.headers.set("X-Request-Id", requestId);
  if (console.listener.isRetired) response.headers.set("Connection", "close");
  console.log.debug(
    { request_id: requestId, method: request.method, status: response.status },
    "console answered",
  );
  return response;
}

function statusOf(error: unknown): number {
  return error instanceof AppError ? errorCatalogue[error.code].status : 500;
}
