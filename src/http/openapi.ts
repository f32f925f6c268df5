/** How the OpenAPI documents of the interfaces are served. `bun run docs` completes them from the definitions. */
import type { Exchange, ExchangeService } from "./exchange.ts";
import { requireHttps, requireOneHost } from "./transport.ts";

export interface Description {
  readonly text: string;
  readonly etag: string;
}

/** Computes the description at the first request, which needs no key, when the bound address is known. */
export function describeOnce(document: () => string): () => Description {
  let made: Description | null = null;
  return () => {
    if (made === null) {
      const text = document();
      const digest = new Bun.CryptoHasher("sha256").update(text).digest("hex");
      made = { text, etag: `"${digest.slice(0, 32)}"` };
    }
    return made;
  };
}

/** Answers `GET /openapi.yaml`, also if the client has it already (RFC 9110, 13). */
export function describeOn(
  service: ExchangeService & {
    readonly description: () => Description;
  },
  exchange: Exchange,
): Response {
  const { request, requestId } = exchange;
  try {
    requireOneHost(request.headers);
    requireHttps(service.transport, request.headers, () => exchange.peer());
    const { text, etag } = service.description();
    const headers = {
      "Content-Type": "application/yaml",
      ETag: etag,
      "Cache-Control": "no-cache",
      "X-Request-Id": requestId,
    };
    if (matches(etag, request.headers.get("if-none-match"))) {
      return exchange.succeed(new Response(null, { status: 304, headers }));
    }
    return exchange.succeed(new Response(text, { headers }));
  } catch (error) {
    return exchange.refuse(error);
  }
}

function matches(etag: string, ifNoneMatch: string | null): boolean {
  if (ifNoneMatch === null) return false;
  const tags = ifNoneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}
