/** One request: its id, its key's owner, its answer and its log line. */
import type { Context } from "elysia";
import type { Logger } from "pino";
import { AppError, UNKNOWN_FIELD } from "../domain/errors.ts";
import type { Refused, RequestObserver } from "../domain/activity/activity.ts";
import type { Signal } from "../domain/signal/signal.ts";
import type { Appended, Identity } from "../domain/storage/append.ts";
import type { Reader } from "../domain/storage/feed.ts";
import { errorResponse } from "./error-response.ts";
import { answerWhileSending, closesWhileSending } from "./linger.ts";
import type { ListenerState } from "./listener.ts";
import type { RefusalLog } from "./limits/refusal-log.ts";
import type { TransportPolicy } from "./transport.ts";

export type Server = Context["server"];

/** What an interface tells each of its requests. */
export interface ExchangeService {
  readonly transport: TransportPolicy;
  readonly log: Logger;
  readonly refusals: RefusalLog;
  readonly listener: ListenerState;
  /** Empty for an interface whose requests nobody counts. */
  readonly observers: readonly RequestObserver[];
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** Uses `private`: `#` is measurably slower on the path of a signal. */
export class Exchange implements Refused {
  readonly request: Request;
  readonly requestId = Bun.randomUUIDv7();
  /** Null until all of it has arrived. */
  body: Uint8Array | null = null;
  /** The owner of the key, which may be revoked or expired. */
  identity: Identity | null = null;
  /** The same of a read key, for the log. */
  reader: Pick<Reader, "keyId" | "deskName"> | null = null;
  private readonly service: ExchangeService;
  readonly server: Server;
  private readonly startedAt = performance.now();

  constructor(service: ExchangeService, request: Request, server: Server) {
    this.service = service;
    this.request = request;
    this.server = server;
  }

  get headers(): Headers {
    return this.request.headers;
  }

  /** Null when the connection is gone. */
  peer(): string | null {
    return this.server?.requestIP(this.request)?.address ?? null;
  }

  recordAcceptance(owner: Identity, receivedAt: number, signal: Signal, appended: Appended): void {
    const durationMs = performance.now() - this.startedAt;
    const { requestId } = this;
    const acceptance = { requestId, receivedAt, signal, appended, durationMs };
    this.tell((observer) => observer.accepted(owner, acceptance));
  }

  /** Finishes every answer that is not an error. */
  succeed(response: Response): Response {
    const { log } = this.service;
    if (log.isLevelEnabled("debug")) log.debug(this.describe(response.status), "answered");
    return this.retire(response);
  }

  /** Finishes every error. */
  refuse(error: unknown): Response {
    const response = errorResponse(error, this.requestId);
    this.logRefusal(response.status, error);
    this.recordRefusal(error);
    const isSending = this.body === null && closesWhileSending(this.request, this.service.listener);
    return this.retire(isSending ? answerWhileSending(this.request, response) : response);
  }

  /** Reports why an answer that has begun was cut. */
  cut(error: unknown): void {
    this.logRefusal(200, error);
  }

  /** Makes this answer the connection's last if the server takes no more requests. */
  private retire(response: Response): Response {
    if (this.service.listener.isRetired) response.headers.set("Connection", "close");
    return response;
  }

  /** Never logs a key, a body, or a header other than the proxy's; names only known fields. */
  private logRefusal(status: number, error: unknown): void {
    const { log, refusals } = this.service;
    const line = () => ({ ...this.describe(status), client: this.client() });
    if (error instanceof AppError) {
      refusals.write(() => ({ ...line(), error: error.seenCode, ...describeFields(error) }));
    } else if (this.request.signal.aborted) {
      log.debug(line(), "the client went away");
    } else {
      refusals.write(() => ({ ...line(), err: error }), "failed");
    }
  }

  /** Skips aborted requests. */
  private recordRefusal(error: unknown): void {
    const appError = error instanceof AppError ? error : null;
    if (appError === null && this.request.signal.aborted) return;
    this.tell((observer) => {
      observer.rejected(this.identity, this.service.now(), this.requestId, appError, this);
    });
  }

  /** The client gets its answer whatever an observer does: a signal that is stored must not be reported as failed. */
  private tell(inform: (observer: RequestObserver) => void): void {
    const { refusals, observers } = this.service;
    for (const observer of observers) {
      try {
        inform(observer);
      } catch (err) {
        refusals.uncounted(err);
      }
    }
  }

  /** Undefined when the connection is gone. */
  client(): string | undefined {
    const peer = this.peer();
    const { trustedProxies } = this.service.transport;
    return peer === null ? undefined : trustedProxies.clientOf(this.request.headers, peer);
  }

  private describe(status: number) {
    const { request, requestId, startedAt } = this;
    const caller = this.identity ?? this.reader;
    return {
      request_id: requestId,
      method: request.method,
      status,
      duration_ms: Math.round((performance.now() - startedAt) * 1_000) / 1_000,
      ...(caller === null ? {} : { desk: caller.deskName ?? "all", key_id: caller.keyId }),
    };
  }
}

/** Lists known fields by name, and counts the unknown ones, whose names come from the client. */
function describeFields({ detail: { fields, unlistedFields = 0 } }: AppError) {
  if (fields === undefined) return {};
  const known = Object.keys(fields).filter((name) => fields[name] !== UNKNOWN_FIELD);
  const unknownCount = Object.keys(fields).length - known.length + unlistedFields;
  return { fields: known, ...(unknownCount > 0 ? { unknown_fields: unknownCount } : {}) };
}
