/**
 * `GET /openapi.yaml` (`SPEC.md` 4.2): OpenAPI 3.1, made from the definitions that validate
 * (`domain/signal.ts`) and the catalogue of errors (`domain/errors.ts`).
 */
import { stringify } from "yaml";
import { type ErrorCode, errorCatalogue } from "../domain/errors.ts";
import { KEY_PATTERN } from "../domain/key.ts";
import { BODY_BYTES_MAX, SignalBody } from "../domain/signal.ts";

const EXAMPLE_ID = "01K5QZ8F3V9X2M7T4B6N1C0D8E";
const EXAMPLE_TIME = 1_790_000_000_123;
const ULID_PATTERN = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$";

const exampleSignal = {
  source: "venue_2",
  type: "crypto",
  symbol: "BTC/USDT",
  side: "open",
  direction: "long",
  price: 64_250.5,
  quantity: 0.25,
  signal_time: 1_790_000_000_000,
  client_signal_id: "6f0b8a52-3a5c-4b87-9d57-0e4f2b1c7a11",
  metadata: { take_profit: 66_000, stop_loss: 63_000 },
};

/** The document as it is served, with the answers to conditional requests (RFC 9110, 13). */
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

/** The document as an object. `publicUrl` has no trailing slash. */
export function openApiDocument(publicUrl: string): Record<string, unknown> {
  return {
    openapi: "3.1.0",
    info: {
      title: "Signalbox",
      version: "1.0.0",
      summary: "Takes trading signals from desks, durably and exactly once.",
      description,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: publicUrl }],
    tags: [
      { name: "signals", description: "Submitting signals." },
      { name: "description", description: "This document." },
    ],
    paths: {
      "/v1/signals": { post: postSignalOperation() },
      "/openapi.yaml": { get: openApiOperation(), head: openApiHeadOperation() },
    },
    components: {
      securitySchemes,
      // Without the symbols that TypeBox keeps in its objects.
      schemas: {
        Signal: JSON.parse(JSON.stringify(SignalBody)),
        ...resultSchemas,
        ...errorSchemas(),
      },
      headers: headerComponents,
      responses: errorResponses(),
    },
  };
}

const description = `Every request must be made over HTTPS, from server-side code.

Checks are made in this order, and the first that fails gives the answer: path and method (404, 405), transport (403),
key (401), rate (429), media type (415), size (413), JSON (400), fields (422), storage (503).

**Retries.** 201 and 200 are sent only once the signal is on disk. After a 503, a 500, a time-out or a broken connection
the outcome is *unknown*: send the same body again with the same \`client_signal_id\`, with exponential backoff and
jitter, and the signal is stored exactly once. Deduplication is per desk, has no time window, and holds across the keys
of a desk. A 400 or 422 stores nothing and does not use up the \`client_signal_id\`.

**Connections** are closed without an answer when the first headers are not complete after 8 to 12 seconds, when a body
or the next request is not there after 28 to 32 seconds (the timer moves in steps of 4 seconds), or when too many
connections are open and this one has been quiet longest; also when a request arrives before the previous one has its
answer (pipelining), or when the client closes its sending side before it has its answer. The outcome is *unknown* then,
too. A request may be refused while its body is still being sent. Of the rest, at most 8 MiB are read and dropped, for at most 8
seconds, and until none has come for 1 second; after a body over ${BODY_BYTES_MAX} bytes, the connection is closed.

**Without a body and \`X-Request-Id\`.** The HTTP parser answers these by itself and closes the connection; none of them
is in the log: 400 for malformed framing (an HTTP/1.1 request without \`Host\`, a wrong \`Content-Length\` or
\`Transfer-Encoding\`, a target that does not start with \`/\` or \`http://\`, fields behind the last chunk: then the outcome
is *unknown*), 413 for chunk extensions over 16 KB, 431 for headers over 16 KB or more than about 190 of them, 505 for any version
but HTTP/1.0 and 1.1. For a method that HTTP does not know, it closes the connection without an answer.

**Expect.** Exactly \`100-continue\`, in lower case, gets a \`100 Continue\` at once, before the key is checked; in any other
spelling there is no \`100 Continue\`, and the request is answered when its body arrives. The final answer is the same with
and without it.

**Metadata of duplicates** is compared by what the JSON means: white space, the order of members and the notation of texts
and numbers do not count, but every decimal digit of a number's value does.

**JSON** is read as I-JSON (RFC 7493): valid UTF-8 (a leading BOM is accepted), an object at the top, no duplicate member
names at any depth, no unpaired surrogates, nesting of at most 32. Members that are not named here are refused, so that a
misspelt \`client_signal_id\` cannot turn deduplication off.`;

const securitySchemes = {
  bearer: {
    type: "http",
    scheme: "bearer",
    description: `Preferred. \`Authorization: Bearer <API_KEY>\`; a key matches \`${KEY_PATTERN}\`.`,
  },
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "X-API-Key",
    description:
      "Alternative. Used when there is no Authorization; if both are sent they must be the same key.",
  },
};

const idSchema = {
  type: "string",
  pattern: ULID_PATTERN,
  description: "A ULID: ids sort by time, and strictly increase in the order of storage.",
};

const resultSchemas = {
  Stored: {
    type: "object",
    required: ["id", "received_at", "deduped"],
    additionalProperties: false,
    properties: {
      id: idSchema,
      received_at: {
        type: "integer",
        format: "int64",
        description: "Server receive time, epoch milliseconds, UTC.",
      },
      deduped: { type: "boolean", const: false },
    },
  },
  Duplicate: {
    type: "object",
    required: ["id", "deduped"],
    additionalProperties: false,
    properties: {
      id: { ...idSchema, description: "The id of the original signal." },
      deduped: { type: "boolean", const: true },
    },
  },
};

const headerComponents = {
  RequestId: {
    description:
      "Names this request. The server's log has it for refusals and errors, up to 200 a second, and, at level debug, for every request.",
    required: true,
    schema: { type: "string", format: "uuid" },
  },
  RetryAfter: {
    description: "Whole seconds to wait before a retry.",
    required: true,
    schema: { type: "integer", minimum: 1 },
  },
  Allow: {
    description: "The methods that this path takes.",
    required: true,
    schema: { type: "string" },
  },
  WwwAuthenticate: {
    description: "RFC 6750.",
    required: true,
    schema: { type: "string", const: "Bearer" },
  },
  DuplicateDiffers: {
    description:
      "Only when the duplicate's content is not the original's: the fields that differ. The original stays as it is.",
    schema: { type: "string", examples: ["price, metadata"] },
  },
  ETag: { description: "RFC 9110, 8.8.3.", required: true, schema: { type: "string" } },
};

const requestIdHeader = { "X-Request-Id": { $ref: "#/components/headers/RequestId" } };

function postSignalOperation() {
  const example = { id: EXAMPLE_ID, received_at: EXAMPLE_TIME, deduped: false };
  return {
    operationId: "postSignal",
    tags: ["signals"],
    summary: "Submit one signal",
    description:
      "Stores one signal for the desk that owns the key, or finds the one that it repeats.",
    security: [{ bearer: [] }, { apiKey: [] }],
    requestBody: {
      required: true,
      description: `A JSON object of at most ${BODY_BYTES_MAX} bytes, without Content-Encoding.`,
      content: json({ $ref: "#/components/schemas/Signal" }, exampleSignal),
    },
    responses: {
      "201": {
        description: "The signal is stored, and on disk.",
        headers: requestIdHeader,
        content: json({ $ref: "#/components/schemas/Stored" }, example),
      },
      "200": {
        description:
          "The same desk has submitted this `client_signal_id` before; nothing was stored.",
        headers: {
          ...requestIdHeader,
          "X-Duplicate-Differs": { $ref: "#/components/headers/DuplicateDiffers" },
        },
        content: json(
          { $ref: "#/components/schemas/Duplicate" },
          { id: EXAMPLE_ID, deduped: true },
        ),
      },
      ...references([
        "bad_request",
        "unauthorized",
        "https_required",
        "method_not_allowed",
        "payload_too_large",
        "unsupported_media_type",
        "validation_failed",
        "rate_limited",
        "internal_error",
        "unavailable",
      ]),
    },
  };
}

function openApiOperation() {
  return {
    operationId: "getOpenApi",
    tags: ["description"],
    summary: "This document",
    description: "The machine-readable description of the interface. No key is needed.",
    security: [],
    responses: {
      "200": {
        description: "OpenAPI 3.1.",
        headers: { ...requestIdHeader, ETag: { $ref: "#/components/headers/ETag" } },
        content: { "application/yaml": { schema: { type: "string" } } },
      },
      "304": {
        description: "Unchanged since the ETag in If-None-Match.",
        headers: { ...requestIdHeader, ETag: { $ref: "#/components/headers/ETag" } },
      },
      ...references(["https_required", "method_not_allowed", "internal_error"]),
    },
  };
}

/** The responses of GET, without their bodies. */
function openApiHeadOperation() {
  const { responses, ...operation } = openApiOperation();
  const { description: ok, headers } = responses["200"];
  return {
    ...operation,
    operationId: "headOpenApi",
    summary: "The headers of this document",
    description: "What GET answers, without the body.",
    responses: { ...responses, "200": { description: ok, headers } },
  };
}

function references(codes: readonly ErrorCode[]): Record<string, unknown> {
  return Object.fromEntries(
    codes.map((code) => [
      String(errorCatalogue[code].status),
      { $ref: `#/components/responses/${code}` },
    ]),
  );
}

const errorHeaders: Partial<Record<ErrorCode, Record<string, unknown>>> = {
  unauthorized: { "WWW-Authenticate": { $ref: "#/components/headers/WwwAuthenticate" } },
  method_not_allowed: { Allow: { $ref: "#/components/headers/Allow" } },
  rate_limited: { "Retry-After": { $ref: "#/components/headers/RetryAfter" } },
  unavailable: { "Retry-After": { $ref: "#/components/headers/RetryAfter" } },
};

const errorCodes = Object.keys(errorCatalogue) as ErrorCode[];

function errorResponses(): Record<string, unknown> {
  return Object.fromEntries(
    errorCodes.map((code) => [
      code,
      {
        description: errorDescriptions[code],
        headers: { ...requestIdHeader, ...errorHeaders[code] },
        content: json({ $ref: `#/components/schemas/${code}` }, errorExample(code)),
      },
    ]),
  );
}

const errorDescriptions: Record<ErrorCode, string> = {
  bad_request: "The body is not valid JSON, or not I-JSON. Do not retry unchanged.",
  unauthorized:
    "The key is missing, malformed, unknown, revoked or expired. The message says which header to send when there is no key; it is the same for every key that is not valid. Fix the request before retrying.",
  validation_failed:
    "One or more fields are invalid, all of them in `fields`. Do not retry unchanged.",
  internal_error: "Unexpected server error. Retry with backoff.",
  https_required:
    "The request came over plain HTTP. It is never redirected: the key has been sent in the clear.",
  not_found: "There is nothing at this path.",
  method_not_allowed: "The path does not take this method.",
  payload_too_large: `The body is larger than ${BODY_BYTES_MAX} bytes.`,
  unsupported_media_type: "The body is not application/json in UTF-8, or has a Content-Encoding.",
  rate_limited: "The desk sends faster than its limit. Retry after the given seconds.",
  unavailable:
    "The queue or the disk is full, or the server is stopping or failing. The outcome is unknown: retry with the same `client_signal_id`.",
};

function errorExample(code: ErrorCode): Record<string, unknown> {
  const { message } = errorCatalogue[code];
  if (code === "validation_failed") {
    return { error: code, fields: { symbol: "required", side: "must be one of: open, close" } };
  }
  return message === null ? { error: code } : { error: code, message };
}

function errorSchemas(): Record<string, unknown> {
  return Object.fromEntries(errorCodes.map((code) => [code, errorSchema(code)]));
}

function errorSchema(code: ErrorCode): Record<string, unknown> {
  const error = { type: "string", const: code };
  if (code === "validation_failed") {
    const fields = {
      type: "object",
      minProperties: 1,
      additionalProperties: { type: "string" },
      description:
        "Invalid field name → reason. The reason of a name close to a field's is `unknown field; did you mean client_signal_id?`.",
    };
    return closedObject({ error, fields });
  }
  if (errorCatalogue[code].message === null) return closedObject({ error });
  return closedObject({ error, message: { type: "string" } });
}

function closedObject(properties: Record<string, unknown>): Record<string, unknown> {
  return {
    type: "object",
    required: Object.keys(properties),
    additionalProperties: false,
    properties,
  };
}

function json(schema: Record<string, unknown>, example: unknown): Record<string, unknown> {
  return { "application/json": { schema, example } };
}
