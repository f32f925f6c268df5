/** How the OpenAPI documents of the interfaces are served. `bun run docs` completes them from the definitions. */
import type { Exchange, ExchangeService } from "./exchange.ts";
import { requireHttps, requireOneHost } from "./transport.ts";

/** Answers `GET /openapi.yaml`, also if the client has it already (RFC 9110, 13). */
export function describeOn(
  service: ExchangeService & {
    /** Returns the document, which may name the address as bound. */
    readonly description: () => string;
  },
  exchange: Exchange,
): Response {
  const { request, requestId } = exchange;
  try {
    requireOneHost(request.headers);
    requireHttps(service.transport, request.headers, () => exchange.peer());
    const text = service.description();
    const digest = new Bun.CryptoHasher("sha256").update(text).digest("hex");
    const etag = `"${digest.slice(0, 32)}"`;
    const headers = {
      "Content-Type": "application/yaml",
      ETag: etag,
      "Cache-Control": "no-cache",
      "X-Request-Id": requestId,
    };
    const isKnown = matches(etag, request.headers.get("if-none-match"));
    const answer = isKnown ? new Response(null, { status: 304, headers }) : null;
    return exchange.succeed(answer ?? new Response(text, { headers }));
  } catch (error) {
    return exchange.refuse(error);
  }
}

function matches(etag: string, ifNoneMatch: string | null): boolean {
  if (ifNoneMatch === null) return false;
  const tags = ifNoneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}
