/** The public interface: one endpoint and its description. */
import type { Elysia } from "elysia";
import { AppError } from "../domain/errors.ts";
import { parseSignal } from "../domain/signal/signal.ts";
import type { SignalStore } from "../domain/storage/append.ts";
import { readBody, requireJson } from "../http/body.ts";
import { Exchange, type ExchangeService } from "../http/exchange.ts";
import type { KnownPeers } from "../http/limits/known-peers.ts";
import { describeOn } from "../http/openapi.ts";
import type { RateLimiter } from "../http/limits/rate.ts";
import { createApp, noSuchRoute } from "../http/routes.ts";
import { requireHttps, requireOneHost } from "../http/transport.ts";
import { findOwner, requireActive } from "./auth.ts";
import { acceptedResponse } from "./responses.ts";

export interface PublicInterface extends ExchangeService {
  readonly store: SignalStore;
  readonly rateLimiter: RateLimiter;
  readonly known: KnownPeers;
  readonly description: () => string;
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
    requireActive(owner, service.now());
    service.known.add(request, exchange.server);
    const { keyId, deskId, deskName } = owner;
    service.rateLimiter.take(deskId, performance.now());
    requireJson(headers);
    const body = await readBody(request);
    exchange.isBodyRead = true;
    const signal = parseSignal(body);
    const receivedAt = service.now();
    const appended = await service.store.append({ keyId, deskId, receivedAt, signal });
    exchange.recordAcceptance(owner, receivedAt, signal.signal_time, appended);
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
