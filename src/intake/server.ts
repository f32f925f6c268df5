/** The public interface: one endpoint and its description. */
import type { Elysia } from "elysia";
import { AppError } from "../domain/errors.ts";
import { isWellFormedKey, keyState } from "../domain/key/key.ts";
import { parseSignal } from "../domain/signal/signal.ts";
import type { Appended, KeyOwner, SignalStore } from "../domain/storage/append.ts";
import type { Awaitable } from "../domain/storage/awaitable.ts";
import { readBody, requireJson } from "../http/body.ts";
import { presentedKey } from "../http/credentials.ts";
import { Exchange, type ExchangeService } from "../http/exchange.ts";
import type { KeyLimiter } from "../http/limits/key-limiter.ts";
import type { KnownPeers } from "../http/limits/known-peers.ts";
import { type Description, describeOn } from "../http/openapi.ts";
import type { RateLimiter } from "../http/limits/rate.ts";
import { createApp, noSuchRoute } from "../http/routes.ts";
import { requireHttps, requireOneHost } from "../http/transport.ts";

export interface PublicInterface extends ExchangeService {
  readonly store: SignalStore;
  readonly rateLimiter: RateLimiter;
  readonly keyLimiter: KeyLimiter;
  readonly known: KnownPeers;
  readonly description: () => Description;
}

/** Path → the methods that it takes, for 405 and its `Allow`. */
const allowedMethods: Record<string, string[]> = {
  "/v1/signals": ["POST"],
  "/openapi.yaml": ["GET", "HEAD"],
};

/**
 * Bypasses Elysia's own body parsing, normalising and error answers: they accept bodies that must be
 * refused, and repeat what the client sent.
 */
export function createPublicInterface(service: PublicInterface): Elysia {
  return createApp((request, server) =>
    new Exchange(service, request, server).refuse(noSuchRoute(request, allowedMethods)),
  )
    .onError(({ error, request, server }) => new Exchange(service, request, server).refuse(error))
    .post(
      "/v1/signals",
      ({ request, server }) => postSignal(service, new Exchange(service, request, server)),
      { parse: "none" },
    )
    .get("/openapi.yaml", ({ request, server }) =>
      describeOn(service, new Exchange(service, request, server)),
    ) as unknown as Elysia;
}

/**
 * Each step throws the error that ends the request (`openapi.yaml` documents their order). This is one
 * async function: each further one would cost every signal two turns of the microtask queue.
 */
async function postSignal(service: PublicInterface, exchange: Exchange): Promise<Response> {
  const { request, requestId } = exchange;
  const { headers } = request;
  try {
    requireOneHost(headers);
    requireHttps(service.transport, headers, () => exchange.peer());
    const found = findOwner(headers, service.store);
    // Awaiting a value that is no promise would cost every signal a turn of the microtask queue.
    const owner = found instanceof Promise ? await found : found;
    if (owner === null) throw new AppError("unauthorized");
    exchange.identity = owner;
    if (keyState(owner, service.now()) !== "active") throw new AppError("unauthorized");
    const limits = service.keyLimiter.limitsOf(owner.limits);
    limits?.requireNetwork(exchange.client());
    service.known.add(request, exchange.server);
    const { keyId, deskId, deskName } = owner;
    // First, so that what it refuses costs the desk's other keys nothing.
    if (limits !== null) service.keyLimiter.take(limits, keyId, performance.now());
    service.rateLimiter.take(deskId, performance.now());
    requireJson(headers);
    const body = await readBody(request);
    exchange.body = body;
    const signal = parseSignal(body, limits && limits.allowed);
    const receivedAt = service.now();
    const appended = await service.store.append({ keyId, deskId, receivedAt, signal });
    exchange.recordAcceptance(owner, receivedAt, signal, appended);
    if (appended.deduped && appended.differs.length > 0) {
      const { id: signal_id, differs } = appended;
      const line = { request_id: requestId, desk: deskName, key_id: keyId, signal_id, differs };
      service.refusals.write(() => line, "differs");
    }
    return exchange.succeed(acceptedResponse(appended, receivedAt, requestId));
  } catch (error) {
    return exchange.refuse(error);
  }
}

/** Finds the owner of the presented key, in whatever state the key is. Malformed, unknown and read keys have none. */
function findOwner(headers: Headers, store: SignalStore): Awaitable<KeyOwner | null> {
  const key = presentedKey(headers);
  return isWellFormedKey(key, "send") ? store.findOwner(key) : null;
}

/** 201 or 200 (`SPEC.md` 2.2). The fields in which a duplicate differs go into a header, because the body is fixed. */
function acceptedResponse(appended: Appended, receivedAt: number, requestId: string): Response {
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "X-Request-Id": requestId,
  };
  if (!appended.deduped) {
    const body = `{"id":"${appended.id}","received_at":${receivedAt},"deduped":false}`;
    return new Response(body, { status: 201, headers });
  }
  if (appended.differs.length > 0) headers["X-Duplicate-Differs"] = appended.differs.join(", ");
  return new Response(`{"id":"${appended.id}","deduped":true}`, { status: 200, headers });
}
