/** One connection from its first byte to its end, over a raw socket. */
import { send } from "../_raw.ts";
import type { Reply } from "./connections.ts";
import { HOST } from "./messages.ts";

export interface Conversation {
  /** Without interim ones. */
  readonly replies: readonly Reply[];
  readonly end: "closed" | "reset" | "open";
}

/** Where the service and we agree on a request's end, what comes behind it is understood. */
const SENTINEL = `GET /sentinel HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`;

/** What ends it is the end of the connection, not a number of answers. */
const UNTIL_CLOSED = 99;

/**
 * `isLast`: once there is an answer, asks for something that is not there, and for the end. `isOver`:
 * ends our side, because the request may have no end by itself.
 */
export async function converse(
  port: number,
  pieces: readonly (string | Uint8Array)[],
  { isLast = false, isOver = false }: { isLast?: boolean; isOver?: boolean },
): Promise<Conversation> {
  const next = isLast ? [hasAnswered, SENTINEL] : [];
  const { responses, end } = await send(port, [...pieces, ...next], {
    responses: UNTIL_CLOSED,
    halfClose: isOver,
  });
  const replies = responses
    .filter(({ status }) => status >= 200)
    .map(({ status, headers, body }) => ({
      status,
      headers: new Headers(headers),
      text: Buffer.from(body, "latin1").toString("utf8"),
    }));
  return { replies, end };
}

function hasAnswered(text: string): boolean {
  return /^HTTP\/1\.1 [2-5]/m.test(text);
}
