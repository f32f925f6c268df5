/**
 * The documents that the interfaces serve, and the check of an answer against `openapi.yaml`: its status is documented for the path and method, its body fits
 * the schema, no required header is missing, and no header of ours is undocumented.
 */
import { type AnySchema, Ajv2020 } from "ajv/dist/2020.js";
import { parse } from "yaml";
import apiText from "../../src/intake/openapi.yaml" with { type: "text" };
import feedText from "../../src/feed/openapi.yaml" with { type: "text" };

interface ResponseObject {
  readonly headers?: Record<string, { readonly required?: boolean; readonly schema: AnySchema }>;
  readonly content?: Record<string, { readonly schema: AnySchema }>;
}

interface Document {
  readonly paths: Record<
    string,
    Record<string, { readonly responses: Record<string, ResponseObject> } | undefined>
  >;
  readonly components: { readonly responses: Record<string, ResponseObject> };
}

export const apiDocument = parse(apiText as string) as Record<string, unknown>;
export const feedDocument = parse(feedText as string) as Record<string, unknown>;

const document = withoutReferences(apiDocument) as Document;
const ajv = new Ajv2020({
  strict: false,
  allErrors: true,
  formats: { int64: true, double: true, uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/ },
});

/** Not documented, because every HTTP answer may have them. */
const standardHeaders = new Set([
  "connection",
  "transfer-encoding",
  "content-length",
  "content-type",
  "date",
  "cache-control",
]);

/** Throws if the answer is not as documented. */
export function checkAgainstDescription(
  method: string,
  path: string,
  { status, headers }: Response,
  text: string,
): void {
  const place = `${method} ${path} → ${status}`;
  const documented = documentedResponse(method, path.split("?", 1)[0] ?? "", status);
  if (documented === undefined) throw new Error(`${place} is not documented`);
  checkHeaders(place, documented.headers ?? {}, headers);
  const { content } = documented;
  if (content === undefined || method === "HEAD") {
    if (text !== "") throw new Error(`${place} has a body, and none is documented`);
    return;
  }
  const type = headers.get("content-type") ?? "none";
  const schema = content[type]?.schema;
  if (schema === undefined) throw new Error(`${place} has the undocumented content type ${type}`);
  if (type === "application/json") check(place, schema, JSON.parse(text));
}

/** The answers to unknown paths and methods are documented beside the paths. */
function documentedResponse(
  method: string,
  path: string,
  status: number,
): ResponseObject | undefined {
  const operations = document.paths[path];
  const { not_found, method_not_allowed } = document.components.responses;
  if (operations === undefined) return status === 404 ? not_found : undefined;
  const operation = operations[method.toLowerCase()];
  if (operation === undefined) return status === 405 ? method_not_allowed : undefined;
  return operation.responses[status];
}

function checkHeaders(
  place: string,
  documented: NonNullable<ResponseObject["headers"]>,
  headers: Headers,
): void {
  for (const [name, { required, schema }] of Object.entries(documented)) {
    const value = headers.get(name);
    if (value === null && required === true) throw new Error(`${place} lacks the header ${name}`);
    if (value === null) continue;
    const isInteger = (schema as { type?: string }).type === "integer";
    check(`${place}, header ${name}`, schema, isInteger ? Number(value) : value);
  }
  const names = Object.keys(documented).map((name) => name.toLowerCase());
  for (const name of headers.keys()) {
    if (!names.includes(name) && !standardHeaders.has(name)) {
      throw new Error(`${place} has the undocumented header ${name}`);
    }
  }
}

function check(place: string, schema: AnySchema, value: unknown): void {
  const validate = ajv.compile(schema);
  if (!validate(value)) throw new Error(`${place}: ${ajv.errorsText(validate.errors)}`);
}

/** Replaces each `$ref` by what it refers to. */
function withoutReferences(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutReferences);
  if (node === null || typeof node !== "object") return node;
  const { $ref, ...members } = node as Record<string, unknown>;
  if (typeof $ref !== "string") {
    return Object.fromEntries(
      Object.entries(members).map(([name, value]) => [name, withoutReferences(value)]),
    );
  }
  const path = $ref.slice("#/".length).split("/");
  return withoutReferences(
    path.reduce<unknown>((from, name) => (from as Record<string, unknown>)[name], apiDocument),
  );
}
