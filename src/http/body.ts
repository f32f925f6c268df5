/** Reads a request's body: its media type (RFC 9110, 8.3 and 8.4), then its bytes, never more than the limit. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { MIMEType } from "node:util";
import { AppError } from "../domain/errors.ts";
import { BODY_BYTES_MAX } from "../domain/signal/signal.ts";

/** Throws `unsupported_media_type` for anything but JSON in UTF-8 without a content coding. */
export function requireJson(headers: Headers): void {
  const contentType = headers.get("content-type");
  if (contentType !== "application/json" && !isJson(contentType)) {
    throw new AppError("unsupported_media_type");
  }
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw new AppError("unsupported_media_type");
  }
}

function isJson(contentType: string | null): boolean {
  if (contentType === null || charsetsOf(contentType) > 1) return false;
  try {
    const { essence, params } = new MIMEType(contentType);
    const charset = params.get("charset");
    return (
      essence === "application/json" && (charset === null || charset.toLowerCase() === "utf-8")
    );
  } catch {
    return false;
  }
}

/** {@link MIMEType} ignores all but the first. */
function charsetsOf(contentType: string): number {
  return contentType.match(/;\s*charset\s*=/gi)?.length ?? 0;
}

/** Throws `payload_too_large` as soon as the body exceeds the limit. */
export function readBody(request: Request): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared === null) return readChunked(request);
  if (Number(declared) > BODY_BYTES_MAX) throw new AppError("payload_too_large");
  return request.bytes();
}

/**
 * Leaves the rest of a body that is too large in the stream. Between two reads Bun joins the chunks that have arrived:
 * otherwise thousands of chunks of a byte would cost the thread ten times as much.
 */
async function readChunked(request: Request): Promise<Uint8Array> {
  const body = Buffer.allocUnsafe(BODY_BYTES_MAX);
  let length = 0;
  if (request.body === null) return body.subarray(0, 0);
  for await (const chunk of request.body.values({ preventCancel: true })) {
    if (length + chunk.length > BODY_BYTES_MAX) throw new AppError("payload_too_large");
    body.set(chunk, length);
    length += chunk.length;
    await nextTurn();
  }
  return body.subarray(0, length);
}
