/** What may come back: the answers of openapi.yaml, to the letter, and by name what Bun says by itself. */
import packageJson from "../../package.json" with { type: "json" };
import { checkAgainstDescription } from "../_openapi.ts";
import type { Reply } from "./connections.ts";

/** The bodies of the refusals that are the same for all, as the contract and the README have them. */
const fixedBodies: Readonly<Record<number, string>> = {
  404: '{"error":"not_found","message":"This path does not exist; signals go to POST /v1/signals."}',
  405: '{"error":"method_not_allowed","message":"This path does not take this method; see the Allow header."}',
  413: '{"error":"payload_too_large","message":"The body is larger than 65536 bytes."}',
  415: '{"error":"unsupported_media_type","message":"Send the body as Content-Type: application/json, in UTF-8, without Content-Encoding."}',
};

/** The sentences of a 401, none with anything in it that was sent. */
const howToSendAKey = "send the header Authorization: Bearer <API_KEY>.";
const unauthorized: readonly string[] = [
  "The API key is not valid: it is unknown, revoked or expired.",
  "Authorization and X-API-Key carry different keys; send only one of the two.",
  `The request has no API key; ${howToSendAKey}`,
  `The word Bearer is missing before the API key; ${howToSendAKey}`,
  `The Authorization header is not of the form Bearer <API_KEY>; ${howToSendAKey}`,
  `There is no API key after the word Bearer; ${howToSendAKey}`,
].map((message) => JSON.stringify({ error: "unauthorized", message }));

/** Behind the reason of an unknown field: the field that was probably meant. */
const HINT = /(?<=^unknown field); did you mean [a-z_]+\?$/;

/** A reason and a place, in words of ours: nothing that was sent. */
const BAD_JSON =
  /^\{"error":"bad_request","message":"The body is not valid JSON: [A-Za-z0-9, -]+\."\}$/;

/** How it is made, and where. */
const INTERNALS =
  /bun|elysia|sqlite|node_modules|\/src\/|\/tmp\/|\/home\/|\/root\/|\.[jt]s\b|\bstack\b|\bat [\w.]+ ?\(|error:|exception|undefined|\[object|desk_id|key_id|key_hash|api_keys|select |insert |constraint|pragma/i;

export function tellsOfInternals(text: string): boolean {
  return INTERNALS.test(text) || text.includes(packageJson.version);
}

export interface Request {
  readonly method: string;
  /** The path that the answer is documented for; any other than the two is `/nowhere`. */
  readonly path: "/v1/signals" | "/openapi.yaml" | "/nowhere";
}

export interface Expected {
  readonly status: number;
  /** Of a 422. */
  readonly fields?: ReadonlyMap<string, string>;
}

/** What is wrong with an answer of the service's own, or null. A 200 is as good as a 201: see the ledger. */
export function problemOf(request: Request, reply: Reply, expected: Expected): string | null {
  const status = reply.status === 200 && expected.status === 201 ? 201 : reply.status;
  if (status !== expected.status)
    return `is ${reply.status}, not ${expected.status}: ${reply.text}`;
  try {
    const { text, headers } = reply;
    const response = new Response(reply.status === 304 ? null : text, {
      status: reply.status,
      headers,
    });
    checkAgainstDescription(request.method, request.path, response, text);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return wrongText(request, reply, expected) ?? internalsIn(reply);
}

function wrongText(
  { method, path }: Request,
  { status, text }: Reply,
  expected: Expected,
): string | null {
  if (method === "HEAD" || (path === "/openapi.yaml" && status < 400)) return null;
  const fixed = fixedBodies[status];
  if (fixed !== undefined) return text === fixed ? null : `says ${text}`;
  if (status === 401) return unauthorized.includes(text) ? null : `says ${text}`;
  if (status === 400) return BAD_JSON.test(text) ? null : `says ${text}`;
  if (status !== 422) return null;
  const { fields } = JSON.parse(text) as { fields: object };
  const got = Object.entries(fields).map(([name, reason]) =>
    JSON.stringify([name, String(reason).replace(HINT, "")]),
  );
  const want = Array.from(expected.fields ?? [], (pair) => JSON.stringify(pair));
  const isSame = got.toSorted().join() === want.toSorted().join();
  return isSame ? null : `names ${got.join()}, not ${want.join()}`;
}

/** Names of unknown fields are the client's own words, and come back to it alone. */
function internalsIn({ status, headers, text }: Reply): string | null {
  const own =
    status === 422
      ? Object.values((JSON.parse(text) as { fields: object }).fields).join("\n")
      : text;
  const isDescription = headers.get("content-type") === "application/yaml";
  const told =
    [...headers].map((pair) => pair.join(": ")).join("\n") + (isDescription ? "" : `\n${own}`);
  return tellsOfInternals(told) ? `tells of internals: ${told}` : null;
}

/**
 * What Bun answers or does before the service sees a request: a status without a body, and the end of
 * the connection, or just that. None of it can be changed from here, and there is nothing else of it:
 * a case names the one that may befall it.
 */
export const byRuntime = {
  /** The message has no sure end, or is no HTTP (RFC 9112: 2.2, 3.2, 5.1, 5.2, 6.1, 6.3, 7.1). */
  framing: 400,
  /** A head of more than 16 KB, or of more than about 190 fields. */
  "long head": 431,
  /** The extensions of a chunk are longer than 16 KB. */
  "long chunk extension": 413,
  /**
   * Fields behind the last chunk. By then the service may have the whole body, and store the signal
   * that nobody is told of.
   */
  trailers: 400,
  /** The request line does not end with a version of HTTP/1. */
  version: 505,
  /** A method that Bun does not know: no answer. */
  "unknown method": null,
  /** A request came while the one before it was being answered: neither has an answer. */
  pipelined: null,
} as const;

export type ByRuntime = keyof typeof byRuntime;

/** Whether an answer is the named one; `any`: where several things are wrong, whichever is seen first. */
export function isByRuntime(name: ByRuntime | "any" | "none", reply: Reply): boolean {
  if (name === "none") return false;
  const statuses: (number | null)[] = name === "any" ? Object.values(byRuntime) : [byRuntime[name]];
  const headers = JSON.stringify([...reply.headers]);
  return (
    statuses.includes(reply.status) && reply.text === "" && headers === '[["connection","close"]]'
  );
}
