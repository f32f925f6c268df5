/** Answers a request whose body may still be on its way. */
import { errorCatalogue } from "../domain/errors.ts";
import { BODY_BYTES_MAX } from "../domain/signal.ts";
import type { ListenerState } from "./listener.ts";

/** How much of the rest of a refused body is read, at most. */
const REST_BYTES_MAX = 8 * 1_048_576;
const REST_MS_MAX = 8_000;
/** A client that has seen its answer stops sending. */
const QUIET_MS_MAX = 1_000;
/** How long the rest is read once the listener is retired: a stop waits for it. */
const RETIRED_MS_MAX = 1_000;

/**
 * Whether Bun would close the connection with bytes unread. It reads the rest of a short body by itself,
 * unless the client asked it to close.
 */
export function mayBeSending({ headers }: Request): boolean {
  const declared = headers.get("content-length");
  if (declared === null) return headers.has("transfer-encoding");
  return Number(declared) > BODY_BYTES_MAX || headers.get("connection")?.toLowerCase() === "close";
}

/**
 * Sends a response at once, and ends it when a bounded rest of the request's body has been read and
 * dropped. Closing with bytes unread makes TCP reset the connection, and the reset may overtake the
 * response (RFC 9112, 9.6). A connection whose body is known to be too large is closed afterwards.
 */
export function answerWhileSending(
  request: Request,
  response: Response,
  listener: ListenerState,
): Response {
  const { status, headers } = response;
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(await response.bytes());
      if (await dropRest(request, listener)) controller.close();
      else controller.error(new Error("the client goes on sending"));
    },
  });
  const isLarge = Number(request.headers.get("content-length")) > BODY_BYTES_MAX;
  if (isLarge || status === errorCatalogue.payload_too_large.status) {
    headers.set("Connection", "close");
  }
  return new Response(body, { status, headers });
}

/** Returns false when the client has not stopped sending by the limits. */
async function dropRest({ body }: Request, listener: ListenerState): Promise<boolean> {
  if (body === null || body.locked) return true;
  const reader = body.getReader();
  const startedAt = performance.now();
  let isOver = false;
  const stop = (): void => void reader.cancel().catch(() => {});
  const late = setTimeout(() => {
    isOver = true;
    stop();
  }, REST_MS_MAX);
  let quiet = setTimeout(stop, QUIET_MS_MAX);
  try {
    for (let left = REST_BYTES_MAX; left > 0;) {
      const { done, value } = await reader.read();
      if (done) return !isOver;
      if (listener.isRetired && performance.now() - startedAt > RETIRED_MS_MAX) return false;
      left -= value.length;
      clearTimeout(quiet);
      quiet = setTimeout(stop, QUIET_MS_MAX);
    }
    return false;
  } catch {
    // The client is gone.
    return true;
  } finally {
    clearTimeout(late);
    clearTimeout(quiet);
  }
}
