/** Requests as bytes: heads, lengths and chunks. */
import type { Message } from "./connections.ts";

/** Long enough for Elysia to see a path behind it. */
export const HOST = "signals.example";

export function headOf(line: string, lines: readonly string[]): string {
  return `${line}\r\nHost: ${HOST}\r\n${lines.map((one) => `${one}\r\n`).join("")}`;
}

/** The body with its length; `chunkSize`: in chunks of so many bytes instead. */
export function messageOf(head: string, body: Uint8Array, chunkSize: number | null): Message {
  const isHead = head.startsWith("HEAD ");
  const own = (lines: string) => Buffer.from(`${head}${lines}\r\n`, "latin1");
  if (chunkSize !== null) {
    const pieces = [own("Transfer-Encoding: chunked\r\n"), ...chunksOf(body, chunkSize)];
    return { pieces: [Buffer.concat(pieces)], wait: false, isHead };
  }
  return { pieces: [own(`Content-Length: ${body.length}\r\n`), body], wait: false, isHead };
}

function chunksOf(body: Uint8Array, size: number): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < body.length; at += size) {
    const chunk = body.subarray(at, at + size);
    chunks.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n"));
  }
  return [...chunks, Buffer.from("0\r\n\r\n")];
}

/** A signal with a key of its own, to be put behind or into another. It asks for an end of the connection. */
export function secondRequest(key: string, body: string): string {
  return (
    headOf("POST /v1/signals HTTP/1.1", [
      `Authorization: Bearer ${key}`,
      "Content-Type: application/json",
      "Connection: close",
      `Content-Length: ${body.length}`,
      "",
    ]) + body
  );
}
