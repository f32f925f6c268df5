/**
 * The feed's OpenAPI document: `openapi.yaml`, completed from the definitions that validate signals
 * (`domain/signal/signal.ts`), parameters (`query.ts`) and that answer (`domain/errors.ts`).
 */
import { parse } from "yaml";
import { keyPatterns } from "../domain/key/key.ts";
import { SignalBody } from "../domain/signal/signal.ts";
import { type Components, describeErrors, fillIn } from "../http/openapi.ts";
import { messages } from "./errors.ts";
import template from "./openapi.yaml" with { type: "text" };
import { DESK_REQUESTS_MAX, KEY_REQUESTS_MAX, REQUESTS_MAX } from "./places.ts";
import { LIMIT_DEFAULT, LIMIT_MAX, WAIT_S_MAX } from "./query.ts";

const values = {
  LIMIT_DEFAULT,
  LIMIT_MAX,
  WAIT_S_MAX,
  KEY_REQUESTS_MAX,
  DESK_REQUESTS_MAX,
  REQUESTS_MAX,
  KEY_PATTERN: keyPatterns.read,
};

export function feedDocument(): Record<string, unknown> {
  const text = fillIn(template as string, values);
  const { components, ...document } = parse(text) as { components: Components };
  addFields(components.schemas["Signal"] as SignalSchema);
  describeErrors(components, {
    messages,
    fields: {
      limit: `must be a whole number from 1 to ${LIMIT_MAX}`,
      desc: "unknown parameter; did you mean desk?",
    },
    reasons: "Parameter → reason.",
  });
  return { ...document, components };
}

interface SignalSchema {
  readonly properties: Record<string, object>;
  readonly required: string[];
}

/** Where the feed gives something else than bots send. */
const descriptions: Readonly<Record<string, string>> = {
  metadata:
    "The JSON object as it was sent, except that line breaks and tabs between its tokens are spaces.",
};

/** Every field is there; those that were not sent are null. */
function addFields({ properties, required }: SignalSchema): void {
  for (const [name, schema] of Object.entries(SignalBody.properties)) {
    // A copy in JSON, without the symbols that TypeBox keeps in its objects.
    const field = JSON.parse(JSON.stringify(schema)) as { description?: string | undefined };
    field.description = descriptions[name] ?? field.description;
    const isRequired = (SignalBody.required ?? ([] as string[])).some((one) => one === name);
    properties[name] = isRequired ? field : { anyOf: [field, { type: "null" }] };
    required.push(name);
  }
}
