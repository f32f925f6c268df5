/** What the OpenAPI documents of the interfaces share: how they are served, and the error answers. */
import { stringify } from "yaml";
import { type ErrorCode, errorCatalogue } from "../domain/errors.ts";
import type { Exchange, ExchangeService } from "./exchange.ts";
import { requireHttps, requireOneHost } from "./transport.ts";

/** Replaces each `$NAME` in a template. */
export function fillIn(
  template: string,
  values: Readonly<Record<string, string | number>>,
): string {
  return template.replaceAll(/\$([A-Z][A-Z_]+)/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`the template has an unknown $${name}`);
    return String(value);
  });
}

/** Answers `GET /openapi.yaml`. */
export function describeOn(
  service: ExchangeService & { readonly description: Description },
  exchange: Exchange,
): Response {
  const { request, requestId } = exchange;
  try {
    requireOneHost(request.headers);
    requireHttps(service.transport, request.headers, () => exchange.peer());
    return exchange.succeed(service.description.respond(request, requestId));
  } catch (error) {
    return exchange.refuse(error);
  }
}

/** The document as served, with the answers to conditional requests (RFC 9110, 13). Made with the first one. */
export class Description {
  readonly #document: () => Record<string, unknown>;
  #made: { readonly text: string; readonly etag: string } | null = null;

  constructor(document: () => Record<string, unknown>) {
    this.#document = document;
  }

  get text(): string {
    return this.#make().text;
  }

  respond(request: Request, requestId: string): Response {
    const { text, etag } = this.#make();
    const headers = {
      "Content-Type": "application/yaml",
      ETag: etag,
      "Cache-Control": "no-cache",
      "X-Request-Id": requestId,
    };
    if (matches(etag, request.headers.get("if-none-match"))) {
      return new Response(null, { status: 304, headers });
    }
    return new Response(text, { headers });
  }

  #make() {
    if (this.#made === null) {
      const text = stringify(this.#document(), { aliasDuplicateObjects: false, lineWidth: 0 });
      const digest = new Bun.CryptoHasher("sha256").update(text).digest("hex");
      this.#made = { text, etag: `"${digest.slice(0, 32)}"` };
    }
    return this.#made;
  }
}

function matches(etag: string, ifNoneMatch: string | null): boolean {
  if (ifNoneMatch === null) return false;
  const tags = ifNoneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}

/** The part of a document that {@link describeErrors} completes. */
export interface Components {
  readonly schemas: Record<string, unknown>;
  /** By error code. */
  readonly responses: Record<string, Record<string, unknown>>;
}

interface Examples {
  /** Where the interface says something else than the catalogue. */
  readonly messages?: Partial<Record<ErrorCode, string>>;
  readonly fields: Readonly<Record<string, string>>;
  /** Describes `fields`. */
  readonly reasons: string;
}

/** Adds schema and example to each error answer, from the definitions that answer (`domain/errors.ts`). */
export function describeErrors({ schemas, responses }: Components, examples: Examples): void {
  for (const [name, response] of Object.entries(responses)) {
    const code = name as ErrorCode;
    schemas[code] = errorSchema(code, examples);
    response["content"] = {
      "application/json": {
        schema: { $ref: `#/components/schemas/${code}` },
        example: errorExample(code, examples),
      },
    };
  }
}

function errorSchema(code: ErrorCode, { reasons }: Examples): Record<string, unknown> {
  const properties: Record<string, unknown> = { error: { type: "string", const: code } };
  if (errorCatalogue[code].message !== null) properties["message"] = { type: "string" };
  if (code === "validation_failed") {
    properties["fields"] = {
      type: "object",
      minProperties: 1,
      additionalProperties: { type: "string" },
      description: reasons,
    };
  }
  return {
    type: "object",
    required: Object.keys(properties),
    additionalProperties: false,
    properties,
  };
}

function errorExample(code: ErrorCode, { messages, fields }: Examples): Record<string, unknown> {
  const message = messages?.[code] ?? errorCatalogue[code].message;
  if (code === "validation_failed") return { error: code, fields };
  return message === null ? { error: code } : { error: code, message };
}
