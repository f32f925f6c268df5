/** Generated requests that are well framed and wrong in any other way, and bodies in good requests. */
import * as fc from "fast-check";
import { send } from "../kit/raw.ts";
import { type HostileBody, hostileBody } from "./bodies.ts";
import {
  enter,
  head,
  headOf,
  marker,
  overLanes,
  type Target,
  unknownKey,
  withLength,
} from "./target.ts";

/** A header line with a key of the sender's own (`OWN`), of another desk, or a revoked one. */
interface Part {
  readonly lines: readonly string[];
  readonly isGood: boolean;
}

const parts = (isGood: boolean, texts: string): Part[] =>
  texts.split("\n").map((text) => ({ lines: text.trim().split(" + "), isGood }));

const credentials = [
  ...parts(
    true,
    `Authorization: Bearer OWN
    authorization:bearer   OWN
    X-API-Key: OWN
    x-api-key:OWN + Authorization: Bearer OWN`,
  ),
  ...parts(
    false,
    `X-A: none
    Authorization: OWN
    Authorization: Bearer OWN OWN
    Authorization: Bearer OWN,
    Authorization: Bearer OWN0
    Authorization: Basic OWN
    X-API-Key: Bearer OWN
    Proxy-Authorization: Bearer OWN
    Cookie: key=OWN
    Authorization: Bearer OWN + X-API-Key: OTHER
    Authorization: Bearer OWN + Authorization: Bearer OTHER
    X-API-Key: OWN + X-API-Key: OTHER
    Authorization: Bearer REVOKED
    Authorization: Bearer REVOKED + X-API-Key: OWN
    Authorization: Bearer ${unknownKey}
    X-API-Key: ' OR 1=1 --`,
  ),
];

const mediaTypes = [
  ...parts(
    true,
    `Content-Type: application/json
    Content-Type: APPLICATION/json; charset="UTF-8"`,
  ),
  ...parts(
    false,
    `X-B: none
    Content-Type: text/plain
    Content-Type: application/jsonp
    Content-Type: application/json; charset=utf-16
    Content-Type: application/json + Content-Type: text/plain
    Content-Type: application/json + Content-Encoding: gzip
    Content-Type: ${marker}`,
  ),
];

/** Headers that mean something to other servers; none of them may change an answer. */
const noise =
  `X-Forwarded-For: 127.0.0.1|X-Forwarded-Proto: http|X-Forwarded-Host: evil.example|Forwarded: proto=http
  |X-HTTP-Method-Override: GET|X-Original-URL: /openapi.yaml|Idempotency-Key: mine|X-Request-Id: ${marker}
  |Accept: text/html|Range: bytes=0-1|If-Match: *|Upgrade: h2c|TE: trailers|Content_Length: 5|Transfer_Encoding: chunked
  |Connection: keep-alive, Authorization|User-Agent: ${marker}|__proto__: x|Cookie: password=${marker}`.split(
    /\s*\|/,
  );

const wrongPaths =
  `/ /v1/signals/ /V1/SIGNALS //v1/signals /v1/%73ignals /v1%2Fsignals /v1/signals%00 /v1/signals;x=y /healthz
  /readyz /metrics /signalbox.db /%c0%ae%c0%ae/ /% /__proto__ /${marker}`.split(/\s+/);

const mostly = <T>(common: readonly T[], rare: readonly T[]) =>
  fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...common) },
    { weight: 1, arbitrary: fc.constantFrom(...rare) },
  );
const goodOrBad = (all: readonly Part[]) =>
  mostly(
    all.filter(({ isGood }) => isGood),
    all.filter(({ isGood }) => !isGood),
  );

export const hostileRequest = fc.record({
  method: mostly(["POST"], ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"]),
  path: mostly(["/v1/signals"], wrongPaths),
  query: mostly([""], [`?${marker}`, `?key=${marker}`, "?a=%zz", "?/../.."]),
  credentials: goodOrBad(credentials),
  mediaType: goodOrBad(mediaTypes),
  noise: fc.uniqueArray(fc.constantFrom(...noise), { maxLength: 3 }),
  body: hostileBody,
});
type HostileRequest = typeof hostileRequest extends fc.Arbitrary<infer T> ? T : never;

/** The answer by the first check that fails; null: the body decides. */
function statusBeforeBody({ method, path, credentials: key, mediaType }: HostileRequest) {
  if (path !== "/v1/signals") return 404;
  if (method !== "POST") return 405;
  if (!key.isGood) return 401;
  return mediaType.isGood ? null : 415;
}

export async function sendRequests(target: Target, requests: readonly HostileRequest[]) {
  await overLanes(requests, async (request, index) => {
    const { alpha, beta, revokedKey } = target;
    const [owner, other] = index % 2 === 0 ? [alpha, beta] : [beta, alpha];
    const { method, path, query, body } = request;
    const lines = [...request.noise, ...request.credentials.lines, ...request.mediaType.lines];
    const keys: Record<string, string> = { OWN: owner.key, OTHER: other.key, REVOKED: revokedKey };
    const start = head(`${method} ${path}${query} HTTP/1.1`, ...lines);
    const text = start.replaceAll(/OWN|OTHER|REVOKED/g, (name) => keys[name] ?? "");
    const status = statusBeforeBody(request);
    await sendOne(target, owner, { name: `request ${index}`, method, path, text, body, status });
  });
}

/** Everything but the body is as it should be. */
export async function sendBodies(target: Target, bodies: readonly HostileBody[]): Promise<void> {
  await overLanes(bodies, async (body, index) => {
    const owner = index % 2 === 0 ? target.alpha : target.beta;
    const [method, path, text] = ["POST", "/v1/signals", headOf(owner)];
    await sendOne(target, owner, { name: `body ${index}`, method, path, text, body, status: null });
  });
}

interface One {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly text: string;
  readonly body: HostileBody;
  readonly status: number | null;
}

async function sendOne(target: Target, owner: Target["alpha"], one: One): Promise<void> {
  const { name, method, text, body, status } = one;
  const path = one.path === "/v1/signals" ? one.path : "/nowhere";
  const { responses } = await send(target.port, [withLength(text, body.bytes)]);
  const [answer] = responses;
  if (answer === undefined || responses.length > 1) {
    target.problems.push(`${name}: ${responses.length} answers to ${text}${body.bytes.toString()}`);
    return;
  }
  enter(target, name, { method, path }, answer);
  const expected =
    status === null ? (body.isGood ? [200, 201] : [200, 201, 400, 413, 422]) : [status];
  if (!expected.includes(answer.status)) {
    target.problems.push(
      `${name}: ${answer.status}, not ${expected.join()}: ${text}${body.bytes.toString()}`,
    );
  }
  target.ledger.enter({ name, owner, body: body.bytes }, answer);
}
