/** Answers `GET /feed`: with read keys on a listener of its own, and without on a socket that only the owner opens. */
import type { Elysia } from "elysia";
import { AppError } from "../domain/errors.ts";
import { isWellFormedKey, keyState } from "../domain/key/key.ts";
import type { Identity } from "../domain/storage/append.ts";
import type { FeedStore, Reader } from "../domain/storage/feed.ts";
import { presentedKey, textOfKey } from "../http/credentials.ts";
import { Exchange, type ExchangeService, type Server } from "../http/exchange.ts";
import type { KeyLimiter } from "../http/limits/key-limiter.ts";
import type { KnownPeers } from "../http/limits/known-peers.ts";
import { type Description, describeOn } from "../http/openapi.ts";
import type { RefusedKeys } from "../http/limits/refused-keys.ts";
import type { UnknownKeys } from "../http/limits/unknown-keys.ts";
import { createApp, noSuchRoute, targetOf } from "../http/routes.ts";
import { requireHttps, requireOneHost } from "../http/transport.ts";
import { forReaders } from "./errors.ts";
import type { Access, Feed } from "./feed.ts";
import { WAIT_S_MAX } from "./query.ts";

/** How long a client may take nothing of its answer; and a request may wait for its turn, beside its own wait. */
const SILENCE_S = 30;

/**
 * The kernel would otherwise keep up to 4 MiB per connection of an answer that its client does not take. It doubles
 * this; a reader that is 100 ms away still gets about 500 KB/s.
 */
export const SEND_BUFFER_BYTES = 32 * 1_024;

/** What the listener and the socket share. */
interface FeedService extends ExchangeService {
  readonly feed: Feed;
  /** Counts the answers by their status. */
  readonly onAnswer: (status: number) => void;
}

export interface FeedInterface extends FeedService {
  readonly store: FeedStore;
  readonly known: KnownPeers;
  readonly refusedKeys: RefusedKeys;
  readonly unknownKeys: UnknownKeys;
  readonly keyLimiter: KeyLimiter;
  readonly description: () => Description;
}

const allowedMethods = { "/feed": ["GET", "HEAD"], "/openapi.yaml": ["GET", "HEAD"] };

export function createFeedInterface(service: FeedInterface): Elysia {
  return createApp((request, server) =>
    refuse(service, new Exchange(service, request, server), noSuchRoute(request, allowedMethods)),
  )
    .onError(({ error, request, server }) =>
      refuse(service, new Exchange(service, request, server), error),
    )
    .get("/feed", ({ request, server }) => getFeed(service, new Exchange(service, request, server)))
    .get("/openapi.yaml", ({ request, server }) =>
      describeOn(service, new Exchange(service, request, server)),
    ) as unknown as Elysia;
}

/** For the ops socket: no key, all desks. */
export async function answerOwner(
  service: FeedService,
  request: Request,
  server: Server,
): Promise<Response> {
  const exchange = new Exchange(service, request, server);
  const access = { keyId: null, deskId: null, recheck: () => {} };
  try {
    if (!allowedMethods["/feed"].includes(request.method))
      throw noSuchRoute(request, allowedMethods);
    return await readFeed(service, exchange, access);
  } catch (error) {
    return refuse(service, exchange, error);
  }
}

async function getFeed(service: FeedInterface, exchange: Exchange): Promise<Response> {
  const { request } = exchange;
  try {
    requireOneHost(request.headers);
    requireHttps(service.transport, request.headers, () => exchange.peer());
    const key = presentedKey(request.headers);
    const reader = await findReader(service, key);
    exchange.reader = reader;
    requireActive(service, reader);
    const limits = service.keyLimiter.limitsOf(reader.limits);
    // The desk sees these refusals among those of its other keys.
    exchange.identity = reader.deskId === null ? null : (reader as Identity);
    limits?.requireNetwork(exchange.client());
    exchange.identity = null;
    service.known.add(request, exchange.server);
    if (limits !== null) service.keyLimiter.take(limits, reader.keyId, performance.now());
    service.store.recordRead(reader.keyId, service.now());
    const access = {
      keyId: reader.keyId,
      deskId: reader.deskId,
      recheck: async () => requireActive(service, await findReader(service, key)),
    };
    return await readFeed(service, exchange, access);
  } catch (error) {
    if (exchange.reader === null && error instanceof AppError && error.code === "unauthorized") {
      const address = exchange.client() ?? "";
      service.unknownKeys.record(address, textOfKey(request.headers), service.now());
    }
    return refuse(service, exchange, error);
  }
}

async function readFeed(
  { feed, onAnswer }: FeedService,
  exchange: Exchange,
  access: Access,
): Promise<Response> {
  const { request, requestId, server } = exchange;
  const [, ...search] = targetOf(request).split("?");
  server?.timeout(request, WAIT_S_MAX + SILENCE_S);
  const body = await feed.read({
    search: search.join("?"),
    // HEAD asks for the headers, which are known now.
    mayWait: request.method !== "HEAD",
    access,
    gone: request.signal,
    onCut: (error) => exchange.cut(error),
  });
  server?.timeout(request, SILENCE_S);
  const headers = {
    "Content-Type": "application/x-ndjson",
    "Cache-Control": "no-store",
    "X-Request-Id": requestId,
  };
  onAnswer(200);
  return exchange.succeed(new Response(body, { headers }));
}

async function findReader({ store }: FeedInterface, key: string): Promise<Reader> {
  const reader = isWellFormedKey(key, "read") ? await store.findReader(key) : null;
  if (reader === null) throw new AppError("unauthorized");
  return reader;
}

function requireActive({ refusedKeys, now }: FeedInterface, reader: Reader): void {
  if (keyState(reader, now()) === "active") return;
  refusedKeys.record(reader.keyId, now());
  throw new AppError("unauthorized");
}

function refuse({ onAnswer }: FeedService, exchange: Exchange, error: unknown): Response {
  const response = exchange.refuse(forReaders(error));
  onAnswer(response.status);
  return response;
}
