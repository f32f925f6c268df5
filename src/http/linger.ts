/** Answers a request whose body is still arriving, on a connection that closes after the answer. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ListenerState } from "./listener.ts";

/** How much of the rest of a refused body is read, and for how long. */
const REST_BYTES_MAX = 8 * 1_048_576;
const REST_MS_MAX = 3_000;

/** Whether Bun would close the connection with bytes unread; on a kept connection it reads them itself. */
export function closesWhileSending({ headers }: Request, { isRetired }: ListenerState): boolean {
  const isLast = isRetired || headers.get("connection")?.toLowerCase() === "close";
  return isLast && (headers.has("transfer-encoding") || Number(headers.get("content-length")) > 0);
}

/**
 * Sends a response at once, and ends it when the rest of the request's body has been read and dropped.
 * Closing with bytes unread makes TCP reset the connection, and the reset may overtake the response
 * (RFC 9112, 9.6).
 */
export function answerWhileSending(request: Request, response: Response): Response {
  const { status, headers } = response;
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(await response.bytes());
      await dropRest(request);
      controller.close();
    },
  });
  return new Response(body, { status, headers });
}

async function dropRest({ body }: Request): Promise<void> {
  if (body === null || body.locked) return;
  const reader = body.getReader();
  const stop = (): void => void reader.cancel().catch(() => {});
  const late = setTimeout(stop, REST_MS_MAX);
  try {
    for (let left = REST_BYTES_MAX; left > 0;) {
      const { done, value } = await reader.read();
      if (done) return;
      left -= value.length;
      // Bun joins small chunks meanwhile, as in `body.ts`.
      await nextTurn();
    }
    stop();
  } catch {
    // The client is gone.
  } finally {
    clearTimeout(late);
  }
}
