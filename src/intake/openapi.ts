/**
 * `GET /openapi.yaml` (`SPEC.md` 4.2): `openapi.yaml`, completed from the definitions that validate
 * (`domain/signal/signal.ts`) and answer (`domain/errors.ts`).
 */
import { parse } from "yaml";
import { keyPatterns } from "../domain/key/key.ts";
import { BODY_BYTES_MAX, SignalBody } from "../domain/signal/signal.ts";
import { type Components, describeErrors, fillIn } from "../http/openapi.ts";
import template from "./openapi.yaml" with { type: "text" };

/** `publicUrl` has no trailing slash. */
export function openApiDocument(publicUrl: string): Record<string, unknown> {
  const text = fillIn(template as string, { BODY_BYTES_MAX, KEY_PATTERN: keyPatterns.send });
  const { components, ...document } = parse(text) as { components: Components };
  // A copy in JSON, without the symbols that TypeBox keeps in its objects.
  components.schemas["Signal"] = JSON.parse(JSON.stringify(SignalBody));
  describeErrors(components, {
    fields: { symbol: "required", side: "must be one of: open, close" },
    reasons:
      "Invalid field name → reason. The reason for a misspelt name suggests the field: `unknown field; did you mean client_signal_id?`.",
  });
  return { ...document, servers: [{ url: publicUrl }], components };
}
