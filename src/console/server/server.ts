/** The console's interface: pages for members, nothing that programs use. */
import type { Context, Elysia } from "elysia";
import { AppError, type ErrorCode, errorCatalogue } from "../../domain/errors.ts";
import { SignedOutError } from "../../lib/errors.ts";
import { generateToken } from "../../domain/member/member.ts";
import { readBody } from "../../http/body.ts";
import type { ListenerState } from "../../http/listener.ts";
import type { RefusalLog } from "../../http/limits/refusal-log.ts";
import { requireFewParameters } from "../../http/query.ts";
import { createApp, targetOf } from "../../http/routes.ts";
import { requireHttps, type TransportPolicy } from "../../http/transport.ts";
import { findAsset } from "./assets.ts";
import { readCookies } from "./sessions/cookies.ts";
import { csrfTokenOf, hasToken, isSameOrigin } from "./csrf.ts";
import { judgeHost, type OwnHosts } from "./hosts.ts";
import {
  failurePage,
  forbiddenPage,
  isRateLimited,
  limitedPage,
  managersOnlyPage,
  notFoundPage,
  onwardPage,
  notSavedPage,
  signedOutPage,
} from "./problems.tsx";
import {
  json,
  methodNotAllowed,
  page,
  securityHeaders,
  seeOther,
  sentence,
  strictTransport,
} from "./responses.ts";
import type { Route } from "./routes.ts";
import { signInPath } from "./links.ts";
import type { ConsoleServices } from "./services.ts";
import { cookieNames, type MemberVisit, typedFields, type Visit } from "./visit.ts";
import type { WriteLimit } from "./limits/write-limit.ts";

interface ConsoleInterface extends ConsoleServices {
  /** Limits the forms that members send. */
  readonly writes: WriteLimit;
  readonly routes: readonly Route[];
  readonly transport: TransportPolicy;
  /** Returns the client's address, from a trusted proxy if there is one. */
  readonly clientAddress: (headers: Headers, peer: string | null) => string;
  readonly hosts: OwnHosts;
  /** Browsers reach us over HTTPS alone. */
  readonly isHttps: boolean;
  readonly refusals: RefusalLog;
  readonly listener: ListenerState;
}

type Server = Context["server"];

interface Exchange {
  readonly request: Request;
  readonly requestId: string;
  readonly peer: string | null;
  /** The client's address, which a trusted proxy may tell. */
  readonly client: string;
}

export function createConsole(console: ConsoleInterface): Elysia {
  const app = createApp((request, server) =>
    answer(console, request, server, async () => notFound(console, request)),
  );
  app.onError(({ error, request, server }) =>
    answer(console, request, server, () => Promise.reject(error)),
  );
  for (const route of console.routes) {
    app.route(
      route.method,
      route.path,
      ({ request, params, server }) =>
        answer(console, request, server, (exchange) => serve(console, route, exchange, params)),
      { parse: "none" },
    );
    // Elysia would answer HEAD with the handler of GET, which may show a key once or start an export.
    if (route.method === "GET") {
      app.route("HEAD", route.path, ({ request, server }) =>
        answer(console, request, server, async () =>
          methodNotAllowed(methodsOf(console, route.path)),
        ),
      );
    }
  }
  app.get("/assets/:name", ({ request, params, server }) =>
    answer(
      console,
      request,
      server,
      async () => findAsset(`/assets/${params.name}`, request.headers) ?? notFoundPage(),
    ),
  );
  return app;
}

/** Tells bots that were given the console's address the public one; people get a page. */
function notFound({ publicUrl }: ConsoleInterface, request: Request): Response {
  if (!/^\/(v1\/signals|openapi\.yaml)(\?|$)/.test(targetOf(request))) return notFoundPage();
  const message = `This is the console. Signals go to POST ${publicUrl}/v1/signals, which GET ${publicUrl}/openapi.yaml describes.`;
  return json({ error: "not_found" satisfies ErrorCode, message }, 404);
}

function methodsOf({ routes }: ConsoleInterface, path: string): Route["method"][] {
  return routes.filter((route) => route.path === path).map(({ method }) => method);
}

/** Finds the member, reads the form, and answers with the route. */
async function serve(
  console: ConsoleInterface,
  route: Route,
  { request, requestId, peer, client }: Exchange,
  params: Record<string, string>,
): Promise<Response> {
  const { headers } = request;
  requireHttps(console.transport, headers, () => peer);
  requireFewParameters(request.url);
  const cookies = readCookies(headers);
  const now = console.now();
  // Read the form before the session is looked up: it may end while a slow client sends the form.
  const url = new URL(targetOf(request), console.ownOrigin());
  const form = request.method === "POST" ? await readForm(request) : typedFields(url.searchParams);
  const token = cookies.get(cookieNames.session);
  const member = token === null ? null : await console.sessions.find(token, now);
  if (token !== null && member === null) cookies.clear(cookieNames.session);
  const secret = member === null || token === null ? visitorOf(cookies) : token;
  const visit: Visit = {
    request,
    url,
    params,
    form,
    csrfToken: csrfTokenOf(secret),
    requestId,
    address: client,
    now,
    member,
    outage: console.outage(),
    cookies,
  };
  const response =
    request.method === "POST"
      ? await handleForm(console, route, visit)
      : await handlePage(console, route, visit);
  cookies.apply(response.headers);
  return response;
}

async function handleForm(
  console: ConsoleInterface,
  route: Route,
  visit: Visit,
): Promise<Response> {
  const { request, member } = visit;
  if (!isSameOrigin(request.headers, console.ownOrigin())) return forbiddenPage();
  if (route.access !== "public" && member === null) {
    return signedOutPage(returnPath(route, visit));
  }
  if (!hasToken(visit)) return forbiddenPage();
  const refusal = refuse(route, visit);
  if (refusal !== null) return refusal;
  try {
    // Only here: forms that were refused do not count.
    if (member !== null) console.writes.take(member, route.path, performance.now());
    return await handle(console, route, visit);
  } catch (error) {
    if (error instanceof SignedOutError) return seeOther(signInPath(returnPath(route, visit)));
    if (isRateLimited(error)) return limitedPage(visit, error);
    const reason = console.whyNotSaved(error);
    if (reason !== null) return notSavedPage(visit, reason, returnPath(route, visit));
    throw error;
  }
}

async function handlePage(
  console: ConsoleInterface,
  route: Route,
  visit: Visit,
): Promise<Response> {
  if (route.access !== "public" && visit.member === null) {
    return toSignIn(visit, returnPath(route, visit));
  }
  return refuse(route, visit) ?? (await handle(console, route, visit));
}

/** Null if the member, who is signed in, may use the route. */
function refuse({ access }: Route, visit: Visit): Response | null {
  const { member } = visit;
  if (member === null || access === "public" || access === "signed-in") return null;
  if (member.mustAddPasskey) return seeOther("/passkey");
  return access === "manager" && member.role !== "manager" ? managersOnlyPage(visit) : null;
}

/** Handlers of public routes take a visit without a member, too. */
function handle(console: ConsoleInterface, route: Route, visit: Visit): Promise<Response> {
  return route.handle(console, visit as MemberVisit);
}

/** The page to return to after signing in: for a form, the page that has it. */
function returnPath({ formPage }: Route, { request, url, form }: Visit): string {
  if (request.method === "GET") return url.pathname + url.search;
  const typed = typedFields(form);
  return `${formPage ?? url.pathname}${typed.size === 0 ? "" : `?${typed}`}`;
}

/**
 * Browsers send no cookie with a link from another site, nor after its redirects: the member may be signed
 * in all the same. They do send it when our own page leads on.
 */
function toSignIn({ request }: Visit, next: string): Response {
  const path = signInPath(next);
  return request.headers.get("sec-fetch-site") === "cross-site" ? onwardPage(path) : seeOther(path);
}

function visitorOf(cookies: ReturnType<typeof readCookies>): string {
  const known = cookies.get(cookieNames.visitor);
  if (known !== null && known.length === 43) return known;
  const fresh = generateToken();
  cookies.set(cookieNames.visitor, fresh, null);
  return fresh;
}

async function readForm(request: Request): Promise<URLSearchParams> {
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/x-www-form-urlencoded") throw new AppError("unsupported_media_type");
  const text = new TextDecoder().decode(await readBody(request));
  requireFewParameters(text);
  return new URLSearchParams(text);
}

async function answer(
  console: ConsoleInterface,
  request: Request,
  server: Server,
  respond: (exchange: Exchange) => Promise<Response>,
): Promise<Response> {
  const peer = server?.requestIP(request)?.address ?? null;
  const client = console.clientAddress(request.headers, peer);
  const exchange = { request, requestId: Bun.randomUUIDv7(), peer, client };
  const response = await orFailure(console, exchange, async () => {
    return misdirected(console, request) ?? (await respond(exchange));
  });
  for (const [name, value] of Object.entries(securityHeaders)) response.headers.set(name, value);
  if (console.isHttps) response.headers.set(...strictTransport);
  response.headers.set("X-Request-Id", exchange.requestId);
  if (console.listener.isRetired) response.headers.set("Connection", "close");
  return response;
}

/** Logs no path: it may contain the token of a one-time link. */
async function orFailure(
  { log, refusals }: ConsoleInterface,
  { request: { method }, requestId, client }: Exchange,
  respond: () => Promise<Response>,
): Promise<Response> {
  const describe = (status: number) => ({ request_id: requestId, method, status, client });
  try {
    const response = await respond();
    if (response.status >= 400) refusals.write(() => describe(response.status));
    else log.debug(describe(response.status), "console answered");
    return response;
  } catch (error) {
    const status = statusOf(error);
    if (error instanceof AppError)
      refusals.write(() => ({ ...describe(status), error: error.code }));
    else refusals.write(() => ({ ...describe(status), err: error }), "failed");
    return page(failurePage(error, requestId), null, status);
  }
}

/** Null for a request to one of our own host names: no other name gets a page. */
function misdirected({ hosts }: ConsoleInterface, { headers }: Request): Response | null {
  switch (judgeHost(headers.get("host"), hosts)) {
    case "own":
      return null;
    case "malformed":
      return sentence("The request has no valid Host header.", 400);
    case "foreign":
      return sentence(
        "The console is not served under this host name. Use the address that its administrator gave you. Administrators: name the console with --console-url.",
        421,
      );
  }
}

function statusOf(error: unknown): number {
  return error instanceof AppError ? errorCatalogue[error.code].status : 500;
}
