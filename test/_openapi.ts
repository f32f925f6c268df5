/**
 * Holds an answer to `openapi.yaml`: its status is documented for the path and method, its body fits
 * the schema, its required headers are there and it has no header of ours that is not documented.
 */
import { type AnySchema, Ajv2020 } from "ajv/dist/2020.js";
import { openApiDocument } from "../src/api/openapi.ts";

interface ResponseObject {
  readonly $ref?: string;
  readonly headers?: Record<string, { $ref?: string; required?: boolean; schema?: AnySchema }>;
  readonly content?: Record<string, { schema: AnySchema }>;
}

const document = openApiDocument("http://127.0.0.1:8080");
const ajv = new Ajv2020({
  strict: false,
  allErrors: true,
  formats: { int64: true, double: true, uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/ },
});
ajv.addSchema(document, "openapi");

const standardHeaders = new Set([
  "connection",
  "transfer-encoding",
  "content-length",
  "content-type",
  "date",
  "cache-control",
]);

/** Throws where the answer is not as documented. */
export function checkAgainstDescription(
  method: string,
  path: string,
  response: Response,
  text: string,
): void {
  const place = `${method} ${path} → ${response.status}`;
  const documented = documentedResponse(
    method,
    new URL(path, "http://localhost").pathname,
    response.status,
  );
  if (documented === null) throw new Error(`${place} is not documented`);
  checkHeaders(place, documented, response.headers);
  checkBody(place, documented, response.headers.get("content-type"), text, method);
}

function documentedResponse(method: string, path: string, status: number): ResponseObject | null {
  // A path that is not documented has one answer, documented beside the paths.
  const item = at<Record<string, unknown> | undefined>(["paths", path]);
  if (item === undefined) return status === 404 ? deref("#/components/responses/not_found") : null;
  const operation = item[method.toLowerCase()];
  if (operation === undefined) {
    return status === 405 ? deref("#/components/responses/method_not_allowed") : null;
  }
  const { responses } = operation as { responses: Record<string, ResponseObject> };
  const response = responses[String(status)];
  return response === undefined ? null : resolved(response);
}

function checkHeaders(place: string, documented: ResponseObject, headers: Headers): void {
  const names = new Map(
    Object.entries(documented.headers ?? {}).map(([name, header]) => [
      name.toLowerCase(),
      resolved(header),
    ]),
  );
  for (const [name, { required, schema }] of names) {
    const value = headers.get(name);
    if (value === null) {
      if (required === true) throw new Error(`${place} lacks the header ${name}`);
    } else if (schema !== undefined) {
      const isInteger = (schema as { type?: string }).type === "integer";
      check(`${place}, header ${name}`, ajv.compile(schema), isInteger ? Number(value) : value);
    }
  }
  for (const name of headers.keys()) {
    if (!names.has(name) && !standardHeaders.has(name)) {
      throw new Error(`${place} has the undocumented header ${name}`);
    }
  }
}

function checkBody(
  place: string,
  documented: ResponseObject,
  contentType: string | null,
  text: string,
  method: string,
): void {
  const types = Object.keys(documented.content ?? {});
  if (types.length === 0 || method === "HEAD") {
    if (text !== "") throw new Error(`${place} has a body, and none is documented`);
    return;
  }
  if (contentType === null || !types.includes(contentType)) {
    throw new Error(
      `${place} has the content type ${contentType}; documented: ${types.join(", ")}`,
    );
  }
  if (contentType !== "application/json") return;
  const schema = documented.content?.[contentType]?.schema as { $ref: string };
  const validate = ajv.getSchema(`openapi${schema.$ref}`);
  if (validate === undefined) throw new Error(`${place}: no schema ${schema.$ref}`);
  check(place, validate, JSON.parse(text));
}

function check(
  place: string,
  validate: NonNullable<ReturnType<typeof ajv.getSchema>>,
  value: unknown,
): void {
  if (validate(value) !== true) throw new Error(`${place}: ${ajv.errorsText(validate.errors)}`);
}

function resolved<T extends { readonly $ref?: string }>(object: T): T {
  return object.$ref === undefined ? object : deref<T>(object.$ref);
}

function deref<T>(reference: string): T {
  return at<T>(reference.slice("#/".length).split("/"));
}

function at<T>(path: readonly string[]): T {
  return path.reduce<unknown>(
    (node, name) => (node as Record<string, unknown>)[name],
    document,
  ) as T;
}
