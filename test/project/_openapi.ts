/** Completes the OpenAPI documents: the fields of a signal, the errors and the limits are defined in the program. */
import { parse, stringify } from "yaml";
import { type ErrorCode, errorCatalogue } from "../../src/domain/errors.ts";
import { keyPatterns } from "../../src/domain/key/key.ts";
import { SignalBody } from "../../src/domain/signal/signal.ts";
import { messages } from "../../src/feed/errors.ts";
import { LIMIT_DEFAULT, LIMIT_MAX, WAIT_S_MAX } from "../../src/feed/query.ts";

interface Schema {
  description?: string;
  readonly properties: Record<string, object>;
  required: string[];
}

interface Document {
  readonly paths: Record<
    string,
    { readonly get?: { readonly parameters?: { name: string; schema: object }[] } }
  >;
  readonly components: {
    readonly schemas: Record<string, unknown>;
    readonly responses: Record<string, { content?: object }>;
    readonly securitySchemes: { readonly bearer: { description: string } };
  };
}

const keyText = (key: string) => `Preferred. \`Authorization: Bearer <API_KEY>\`; ${key}.`;

/** `src/intake/openapi.yaml`. */
export function completeApi(text: string): string {
  const document = parse(text) as Document;
  const { schemas, securitySchemes } = document.components;
  securitySchemes.bearer.description = keyText(`a key matches \`${keyPatterns.send}\``);
  schemas["Signal"] = plain(SignalBody);
  describeErrors(document, {
    fields: { symbol: "required", side: "must be one of: open, close" },
    reasons:
      "Invalid field name → reason. The reason for a misspelt name suggests the field: `unknown field; did you mean client_signal_id?`.",
  });
  return written(document);
}

/** `src/feed/openapi.yaml`. */
export function completeFeed(text: string): string {
  const document = parse(text) as Document;
  const { schemas, securitySchemes } = document.components;
  securitySchemes.bearer.description = keyText(`a read key matches \`${keyPatterns.read}\``);
  for (const parameter of document.paths["/feed"]?.get?.parameters ?? []) {
    const limits: Record<string, object> = {
      limit: { maximum: LIMIT_MAX, default: LIMIT_DEFAULT },
      wait: { maximum: WAIT_S_MAX },
    };
    Object.assign(parameter.schema, limits[parameter.name]);
  }
  addFields(schemas["Signal"] as Schema);
  describeErrors(document, {
    messages,
    fields: {
      limit: `must be a whole number from 1 to ${LIMIT_MAX}`,
      desc: "unknown parameter; did you mean desk?",
    },
    reasons: "Parameter → reason.",
  });
  return written(document);
}

/** A copy in JSON, without the symbols that TypeBox keeps in its objects. */
function plain<T>(schema: object): T {
  return JSON.parse(JSON.stringify(schema)) as T;
}

function written(document: Document): string {
  return stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 });
}

/** Where the feed gives something else than bots send. */
const descriptions: Readonly<Record<string, string>> = {
  metadata:
    "The JSON object as it was sent, except that line breaks and tabs between its tokens are spaces.",
};

/** The feed has every field; those that were not sent are null. */
function addFields(signal: Schema): void {
  const sent: readonly string[] = SignalBody.required ?? [];
  for (const [name, schema] of Object.entries(SignalBody.properties)) {
    const field = plain<Schema>(schema);
    field.description = descriptions[name] ?? field.description ?? "";
    signal.properties[name] = sent.includes(name) ? field : { anyOf: [field, { type: "null" }] };
  }
  signal.required = Object.keys(signal.properties);
}

interface Examples {
  /** Where the interface says something else than the catalogue. */
  readonly messages?: Partial<Record<ErrorCode, string>>;
  readonly fields: Readonly<Record<string, string>>;
  /** Describes `fields`. */
  readonly reasons: string;
}

/** Writes the schema and an example of each error answer. */
function describeErrors({ components }: Document, examples: Examples): void {
  for (const [code, response] of Object.entries(components.responses)) {
    const example = exampleOf(code as ErrorCode, examples);
    components.schemas[code] = schemaOf(example, examples);
    const schema = { $ref: `#/components/schemas/${code}` };
    response.content = { "application/json": { schema, example } };
  }
}

function exampleOf(code: ErrorCode, { messages: own, fields }: Examples): Record<string, unknown> {
  const message = own?.[code] ?? errorCatalogue[code].message;
  if (code === "validation_failed") return { error: code, fields };
  return message === null ? { error: code } : { error: code, message };
}

function schemaOf(example: Record<string, unknown>, { reasons }: Examples): object {
  const all: Record<string, object> = {
    error: { type: "string", const: example["error"] },
    message: { type: "string" },
    fields: {
      type: "object",
      minProperties: 1,
      additionalProperties: { type: "string" },
      description: reasons,
    },
  };
  const required = Object.keys(example);
  const properties = Object.fromEntries(required.map((name) => [name, all[name]]));
  return { type: "object", required, additionalProperties: false, properties };
}
