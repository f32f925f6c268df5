/** The public interface: one endpoint and its description, and nothing else. */
import type { Context, Elysia } from "elysia";
import type { Logger } from "pino";
import type { ActivityObserver } from "../domain/activity.ts";
import { AppError, UNKNOWN_FIELD } from "../domain/errors.ts";
import { parseSignal } from "../domain/signal.ts";
import type { Appended, Identity, SignalStore } from "../domain/storage.ts";
import { createApp, targetOf } from "../net/routes.ts";
import { identify, requireActive } from "./auth.ts";
import { readBody, requireJson } from "../net/body.ts";
import { answerWhileSending, mayBeSending } from "../net/linger.ts";
import type { Description } from "./openapi.ts";
import type { ListenerState } from "../net/listener.ts";
import type { RateLimiter } from "../net/rate.ts";
import type { RefusalLog } from "../net/refusal-log.ts";
import { accepted, refused } from "./responses.ts";
import { type Peer, requireHttps, type TransportPolicy } from "../net/transport.ts";

export interface PublicInterface {
  readonly store: SignalStore;
  readonly rateLimiter: RateLimiter;
  readonly transport: TransportPolicy;
  /** Made on first use: it needs the address as bound. */
  readonly description: () => Description;
  /** Null where nobody would see it. */
  readonly activity: ActivityObserver | null;
  readonly log: Logger;
  readonly refusals: RefusalLog;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly listener: ListenerState;
}

type Server = Context["server"];

/** Path → the methods that it takes, for 405 and its `Allow`. */
const allowedMethods: Record<string, string[]> = {
  "/v1/signals": ["POST"],
  "/openapi.yaml": ["GET", "HEAD"],
};

/** What is known of a request when it ends, for the log. */
interface Exchange {
  readonly request: Request;
  readonly server: Server;
  readonly requestId: string;
  readonly startedAt: number;
  /** All of it has come. */
  isBodyRead: boolean;
  /** Of a key that may be revoked or expired. */
  identity: Identity | null;
}

/**
 * Elysia's own body parsing, normalising and error answers stay out of the way: they would accept what
 * must be refused, and echo what must not be.
 */
export function createPublicInterface(service: PublicInterface): Elysia {
  return createApp((request, server) =>
    refuse(service, begin(request, server), noSuchRoute(request)),
  )
    .onError(({ error, request, server }) => refuse(service, begin(request, server), error))
    .post("/v1/signals", ({ request, server }) => postSignal(service, request, server), {
      parse: "none",
    })
    .get("/openapi.yaml", ({ request, server }) =>
      getDescription(service, request, server),
    ) as unknown as Elysia;
}

/**
 * The way a signal takes; each step throws the answer that ends it (see `openapi.yaml` for their order).
 * One asynchronous function: each further one would cost every signal two turns of the microtask queue.
 */
async function postSignal(
  service: PublicInterface,
  request: Request,
  server: Server,
): Promise<Response> {
  const exchange = begin(request, server);
  try {
    const { headers } = request;
    checkTransport(service, exchange);
    const owner = identify(headers, service.store);
    exchange.identity = owner;
    requireActive(owner, service.now());
    const { keyId, deskId } = owner;
    service.rateLimiter.take(deskId, performance.now());
    requireJson(headers);
    const body = await readBody(request);
    exchange.isBodyRead = true;
    const signal = parseSignal(body);
    const receivedAt = service.now();
    const appended = await service.store.append({ keyId, deskId, receivedAt, signal });
    service.activity?.accepted(owner, receivedAt, appended);
    if (appended.deduped && appended.differs.length > 0) {
      warnOfDifference(service.log, owner, appended, exchange.requestId);
    }
    return succeed(service, exchange, accepted(appended, receivedAt, exchange.requestId));
  } catch (error) {
    return refuse(service, exchange, error);
  }
}

function getDescription(service: PublicInterface, request: Request, server: Server): Response {
  const exchange = begin(request, server);
  try {
    checkTransport(service, exchange);
    return succeed(service, exchange, service.description().respond(request, exchange.requestId));
  } catch (error) {
    return refuse(service, exchange, error);
  }
}

function warnOfDifference(
  log: Logger,
  { deskName: desk, keyId: key_id }: Identity,
  { id: signal_id, differs }: Appended & { deduped: true },
  request_id: string,
): void {
  const line = { request_id, desk, key_id, signal_id, differs };
  log.warn(line, "a duplicate differs from its original");
}

function checkTransport({ transport }: PublicInterface, exchange: Exchange): void {
  requireHttps(transport, exchange.request.headers, () => peerOf(exchange));
}

function peerOf({ request, server }: Exchange): Peer | null {
  return server?.requestIP(request) ?? null;
}

/** A method that the path takes was sent to a path that only looks the same once Bun has normalised the URL. */
function noSuchRoute(request: Request): AppError {
  const [path = ""] = targetOf(request).split("?", 1);
  const methods = Object.hasOwn(allowedMethods, path) ? allowedMethods[path] : undefined;
  return methods === undefined || methods.includes(request.method)
    ? new AppError("not_found")
    : new AppError("method_not_allowed", { allow: methods.join(", ") });
}

function begin(request: Request, server: Server): Exchange {
  return {
    request,
    server,
    requestId: Bun.randomUUIDv7(),
    startedAt: performance.now(),
    isBodyRead: false,
    identity: null,
  };
}

/** Every answer that is no error ends here, with its line in the log. */
function succeed(service: PublicInterface, exchange: Exchange, response: Response): Response {
  if (service.log.isLevelEnabled("debug")) {
    service.log.debug(describe(exchange, response.status), "answered");
  }
  return retire(service, response);
}

/** Every answer that is an error ends here, with its line in the log. */
function refuse(service: PublicInterface, exchange: Exchange, error: unknown): Response {
  const response = refused(error, exchange.requestId);
  logRefusal(service, exchange, response.status, error);
  recordRefusal(service, exchange, error);
  const { request, isBodyRead } = exchange;
  const isSending = !isBodyRead && mayBeSending(request);
  return retire(
    service,
    isSending ? answerWhileSending(request, response, service.listener) : response,
  );
}

/** Makes the answer the last one of its connection when the server takes no more. */
function retire({ listener }: PublicInterface, response: Response): Response {
  if (listener.isRetired) response.headers.set("Connection", "close");
  return response;
}

/** Never logs a key, a header other than the proxy's, or a body; names only the fields that we know. */
function logRefusal(
  { log, refusals, transport }: PublicInterface,
  exchange: Exchange,
  status: number,
  error: unknown,
): void {
  const line = () => ({
    ...describe(exchange, status),
    client: clientOf(transport, exchange),
  });
  if (error instanceof AppError) {
    refusals.write(() => ({ ...line(), error: error.code, ...describeFields(error) }));
  } else if (exchange.request.signal.aborted) {
    log.debug(line(), "the client went away");
  } else {
    refusals.write(() => ({ ...line(), err: error }), "failed");
  }
}

/** Undefined when the connection is gone. */
function clientOf({ trustedProxies }: TransportPolicy, exchange: Exchange): string | undefined {
  const peer = peerOf(exchange);
  return peer === null
    ? undefined
    : trustedProxies.clientOf(exchange.request.headers, peer.address);
}

/** Skips requests without a known key and aborted requests. */
function recordRefusal(service: PublicInterface, exchange: Exchange, error: unknown): void {
  const { request, requestId, identity } = exchange;
  if (service.activity === null || identity === null) return;
  const appError = error instanceof AppError ? error : null;
  if (appError === null && request.signal.aborted) return;
  service.activity.rejected(identity, service.now(), requestId, appError);
}

function describe({ request, requestId, startedAt, identity }: Exchange, status: number) {
  return {
    request_id: requestId,
    method: request.method,
    status,
    duration_ms: Math.round((performance.now() - startedAt) * 1_000) / 1_000,
    ...(identity === null ? {} : { desk: identity.deskName, key_id: identity.keyId }),
  };
}

/** Lists the fields that the interface knows, and counts the names that the client made up. */
function describeFields(error: AppError): { fields?: string[]; unknown_fields?: number } {
  const { fields } = error.detail;
  if (fields === undefined) return {};
  const known = Object.keys(fields).filter((name) => fields[name] !== UNKNOWN_FIELD);
  const unknownCount = Object.keys(fields).length - known.length;
  return { fields: known, ...(unknownCount > 0 ? { unknown_fields: unknownCount } : {}) };
}
