/**
 * `GET /openapi.yaml` (`SPEC.md` 4.2): `openapi.yaml`, completed from the definitions that validate
 * (`domain/signal.ts`) and answer (`domain/errors.ts`).
 */
import { parse, stringify } from "yaml";
import { type ErrorCode, errorCatalogue } from "../domain/errors.ts";
import { KEY_PATTERN } from "../domain/key.ts";
import { BODY_BYTES_MAX, SignalBody } from "../domain/signal.ts";
import template from "./openapi.yaml" with { type: "text" };

/** The document as served, with the answers to conditional requests (RFC 9110, 13). */
export class Description {
  readonly text: string;
  readonly #etag: string;

  constructor(publicUrl: string) {
    this.text = stringify(openApiDocument(publicUrl), {
      aliasDuplicateObjects: false,
      lineWidth: 0,
    });
    this.#etag = `"${new Bun.CryptoHasher("sha256").update(this.text).digest("hex").slice(0, 32)}"`;
  }

  respond(request: Request, requestId: string): Response {
    const headers = {
      "Content-Type": "application/yaml",
      ETag: this.#etag,
      "Cache-Control": "no-cache",
      "X-Request-Id": requestId,
    };
    if (this.#matches(request.headers.get("if-none-match"))) {
      return new Response(null, { status: 304, headers });
    }
    return new Response(this.text, { headers });
  }

  #matches(ifNoneMatch: string | null): boolean {
    if (ifNoneMatch === null) return false;
    const tags = ifNoneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
    return tags.includes(this.#etag) || tags.includes("*");
  }
}

interface Template {
  readonly components: {
    readonly schemas: Record<string, unknown>;
    readonly responses: Record<ErrorCode, Record<string, unknown>>;
  };
}

/** `publicUrl` has no trailing slash. */
export function openApiDocument(publicUrl: string): Record<string, unknown> {
  const text = (template as string)
    .replaceAll("BODY_BYTES_MAX", String(BODY_BYTES_MAX))
    .replaceAll("KEY_PATTERN", () => KEY_PATTERN);
  const { components, ...document } = parse(text) as Template;
  const { schemas, responses } = components;
  // A copy in JSON, without the symbols that TypeBox keeps in its objects.
  schemas["Signal"] = JSON.parse(JSON.stringify(SignalBody));
  for (const code of Object.keys(errorCatalogue) as ErrorCode[]) {
    schemas[code] = errorSchema(code);
    responses[code]["content"] = {
      "application/json": {
        schema: { $ref: `#/components/schemas/${code}` },
        example: errorExample(code),
      },
    };
  }
  return { ...document, servers: [{ url: publicUrl }], components };
}

function errorSchema(code: ErrorCode): Record<string, unknown> {
  const properties: Record<string, unknown> = { error: { type: "string", const: code } };
  if (errorCatalogue[code].message !== null) properties["message"] = { type: "string" };
  if (code === "validation_failed") {
    properties["fields"] = {
      type: "object",
      minProperties: 1,
      additionalProperties: { type: "string" },
      description:
        "Invalid field name → reason. The reason for a misspelt name suggests the field: `unknown field; did you mean client_signal_id?`.",
    };
  }
  return {
    type: "object",
    required: Object.keys(properties),
    additionalProperties: false,
    properties,
  };
}

function errorExample(code: ErrorCode): Record<string, unknown> {
  const { message } = errorCatalogue[code];
  if (code === "validation_failed") {
    return { error: code, fields: { symbol: "required", side: "must be one of: open, close" } };
  }
  return message === null ? { error: code } : { error: code, message };
}
