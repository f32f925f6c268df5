/**
 * Generated requests whose bytes are well framed, and whose everything else may be wrong: method,
 * path, key, media type, headers, body. Each part knows what it is good for; the first that is not
 * gives the answer, in the contract's order.
 */
import * as fc from "fast-check";
import type { Expected, Request } from "./answers.ts";
import { type BodyPlan, bodyOf, hostileBody } from "./bodies.ts";
import type { Message } from "./connections.ts";
import { HOST, messageOf } from "./messages.ts";
import { judge, type Row } from "./oracle.ts";
import { marker } from "./secrets.ts";
import { lines, words } from "./texts.ts";

/** Keys to be put into lines. All but `own` and `other` are good for nothing. */
export interface Keys {
  readonly own: string;
  readonly other: string;
  readonly revoked: string;
  readonly unknown: string;
}

interface Part {
  readonly write: (keys: Keys) => readonly string[];
  readonly isGood: boolean;
}

export interface RequestPlan {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly credentials: Part;
  readonly mediaType: Part;
  readonly noise: readonly string[];
  readonly body: BodyPlan;
  readonly chunkSize: number | null;
}

export interface Composed {
  readonly message: Message;
  readonly request: Request;
  readonly expected: Expected;
  /** What shall be stored, if anything. */
  readonly row: Row | null;
}

const parts = (isGood: boolean, all: readonly Part["write"][]): Part[] =>
  all.map((write) => ({ write, isGood }));

const credentials = [
  ...parts(true, [
    ({ own }) => [`Authorization: Bearer ${own}`],
    ({ own }) => [`authorization:bearer   ${own}`],
    ({ own }) => [`AUTHORIZATION: \tBEARER ${own} \t`],
    ({ own }) => [`X-API-Key: ${own}`],
    ({ own }) => [`x-api-key:${own}`, `Authorization: Bearer ${own}`],
  ]),
  ...parts(false, [
    () => [],
    () => ["Authorization:"],
    () => ["Authorization: Bearer"],
    () => ["X-API-Key:"],
    ({ own }) => [`Authorization: ${own}`],
    ({ own }) => [`Authorization: Bearer${own}`],
    ({ own }) => [`Authorization: Bearer\t${own}`],
    ({ own }) => [`Authorization: Bearer "${own}"`],
    ({ own }) => [`Authorization: Bearer ${own} ${own}`],
    ({ own }) => [`Authorization: Bearer ${own},`],
    ({ own }) => [`Authorization: Bearer ${own}\0`.slice(0, -2)],
    ({ own }) => [`Authorization: Bearer ${own}0`],
    ({ own }) => [`Authorization: Bearer ${own.toUpperCase()}`],
    ({ own }) => [`Authorization: Bearer ${own.replace("sbk_", "SBK_")}`],
    ({ own }) => [`Authorization: Bearer ${own.slice("sbk_".length)}`],
    ({ own }) => [`Authorization: Bearer ${encodeURIComponent(own).replace("_", "%5F")}`],
    ({ own }) => [`Authorization: Basic ${btoa(`${own}:`)}`],
    ({ own }) => [`Authorization: Basic ${btoa(`user:${own}`)}`],
    ({ own }) => [`Authorization: Token ${own}`],
    ({ own }) => [`Authorization: Bearer ${btoa(own)}`],
    ({ own }) => [`X-API-Key: Bearer ${own}`],
    ({ own }) => [`X_API_Key: ${own}`],
    ({ own }) => [`Proxy-Authorization: Bearer ${own}`],
    ({ own }) => [`Cookie: key=${own}; Authorization=Bearer ${own}`],
    ({ own, other }) => [`Authorization: Bearer ${own}`, `X-API-Key: ${other}`],
    ({ own }) => [`Authorization: Basic eA==`, `X-API-Key: ${own}`],
    ({ own, other }) => [`Authorization: Bearer ${own}`, `Authorization: Bearer ${other}`],
    ({ own }) => [`Authorization: Bearer ${own}`, `Authorization: Bearer ${own}`],
    ({ own, other }) => [`X-API-Key: ${own}`, `X-API-Key: ${other}`],
    ({ revoked }) => [`Authorization: Bearer ${revoked}`],
    ({ revoked }) => [`X-API-Key: ${revoked}`],
    ({ own, revoked }) => [`Authorization: Bearer ${revoked}`, `X-API-Key: ${own}`],
    ({ unknown }) => [`Authorization: Bearer ${unknown}`],
    () => [`Authorization: Bearer sbk_${"\u00e9".repeat(64)}`],
    () => [`Authorization: Bearer sbk_${"0".repeat(3_000)}`],
    () => ["Authorization: Bearer __proto__"],
    () => ["X-API-Key: ' OR 1=1 --"],
  ]),
];

const types = (isGood: boolean, all: readonly string[]) =>
  parts(
    isGood,
    all.map((type) => () => [`Content-Type: ${type}`]),
  );
const mediaTypes = [
  ...types(true, [
    "application/json",
    "APPLICATION/json",
    "application/json; charset=utf-8",
    'application/json;charset="UTF-8"',
    "application/json; x=y",
  ]),
  ...types(false, [
    "",
    "json",
    "*/*",
    "text/json",
    "text/plain",
    "application/jsonp",
    "application/ld+json",
    "application/json5",
    "application/json, text/plain",
    "application/json; charset=utf-16",
    "application/json; charset=latin1",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/octet-stream",
    "application/json\u00e9",
    "application//json",
    "application/__proto__",
    `application/${"x".repeat(2_000)}`,
  ]),
  ...parts(false, [
    () => [],
    () => ["Content-Type: application/json", "Content-Encoding: gzip"],
    () => ["Content-Type: application/json", "Content-Encoding: "],
    () => ["Content-Type: application/json", "Content-Encoding: identity, gzip"],
    () => ["Content-Type: application/json", "Content-Type: text/plain"],
  ]),
];

/** Headers that mean something to others. None of them may change a thing. */
const noise = [
  ...lines(`
    X-Forwarded-For: 127.0.0.1
    X-Forwarded-Proto: http
    X-Forwarded-Host: evil.example
    Forwarded: for=127.0.0.1;proto=http
    X-Real-IP: 127.0.0.1
    Via: 1.1 evil
    X-HTTP-Method-Override: GET
    X-Original-URL: /openapi.yaml
    X-Rewrite-URL: /
    X-Request-Id: mine
    X-Request-Id:
    Idempotency-Key: mine
    Accept: text/html
    Accept: */*;q=0
    Accept-Encoding: gzip, br
    Range: bytes=0-1
    Content-Range: bytes 0-1/2
    If-Match: *
    TE: trailers
    Trailer: X
    Upgrade: h2c
    HTTP2-Settings: AAMAAABkAAQAAP__
    Max-Forwards: 0
    Keep-Alive: timeout=1
    Connection: keep-alive, Authorization
    Expect: a-surprise
    Content_Length: 5
    Transfer_Encoding: chunked
    Origin: null
    __proto__: x
    constructor: x
    toString: x
    X-A:
    X-A: ␉
    X-A: ÿ␡
    X-A: %0d%0aX-B: y
    a: b`),
  "X-A: ${jndi:ldap://x}",
  `X-Long: ${"a".repeat(3_000)}`,
  Array.from({ length: 120 }, (_, index) => `X-${index}: ${index}`).join("\r\n"),
];

const methods =
  words(`GET HEAD PUT DELETE PATCH OPTIONS TRACE PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK
  SEARCH PURGE REPORT M-SEARCH QUERY`);

const oddPath = fc.oneof(
  fc.constantFrom(
    ...words(`/ /v1 /v1/ /v1/signals/ /v1/signals/x /V1/SIGNALS //v1/signals /v1//signals /v1/./signals
      /v1/x/../signals /v1/signals/. /v1/signals/.. /v1/%73ignals /v1%2Fsignals /v1/signals%00
      /v1/signals%20 /v1/signals%3F /v1/signals;x=y /v1/signals&x /v1/signals\\ /v1\\signals
      /v1/signals.json /v1/%2e%2e/v1/signals /%c0%ae%c0%ae/ /% /%zz /%ff /%u0041 /%00 /v1/signéls /v1/*
      /* /:id /v1/:x /__proto__ /constructor /toString /healthz /readyz /metrics /openapi.json /.env
      /openapi.yaml/ /openapi%2eyaml /Openapi.yaml /signalbox.db /../../etc/passwd /v1/signals#
      /v1/signals#x /v2/signals /favicon.ico`),
    `/${"a".repeat(3_000)}`,
  ),
  fc
    .array(
      fc.constantFrom(
        ...words(
          `v1 signals / // . .. %2e %2F %5c %00 %ff % ; ~ \\ openapi.yaml é * : @ ! ' " < { | ^`,
        ),
      ),
      { minLength: 1, maxLength: 6 },
    )
    .map((all) => `/${all.join("")}`),
);
const query = fc.constantFrom(
  ...words(
    `? ?? ?a=b ?% ?%zz ?ÿ ?__proto__=1 ?a[]=1&a[]=2 ?# ?/../.. ?source=venue_1 ?key= ?a=b?c=d ?; ?/v1/signals`,
  ),
  `?${"a".repeat(2_000)}`,
);

/** One in `count` is any of the second kind. */
const oneIn = <T>(count: number, rare: readonly T[], common: readonly T[]) =>
  fc.oneof(
    { weight: count - 1, arbitrary: fc.constantFrom(...common) },
    { weight: 1, arbitrary: fc.constantFrom(...rare) },
  );
const goodAndBad = (all: readonly Part[]) =>
  oneIn(
    5,
    all.filter(({ isGood }) => !isGood),
    all.filter(({ isGood }) => isGood),
  );

export const hostileRequest: fc.Arbitrary<RequestPlan> = fc.record({
  method: oneIn(6, methods, ["POST"]),
  path: fc.oneof(
    { weight: 16, arbitrary: fc.constant("/v1/signals") },
    { weight: 1, arbitrary: fc.constant("/openapi.yaml") },
    { weight: 3, arbitrary: oddPath },
  ),
  query: fc.oneof({ weight: 4, arbitrary: fc.constant("") }, { weight: 1, arbitrary: query }),
  credentials: goodAndBad(credentials),
  mediaType: goodAndBad(mediaTypes),
  noise: fc.uniqueArray(fc.constantFrom(...noise), { maxLength: 3 }),
  body: hostileBody,
  chunkSize: fc.option(fc.constantFrom(1, 7, 100, 4_000), { freq: 3 }),
});

/** Nothing is wrong with any of it but the body. */
export const hostileBodyRequest: fc.Arbitrary<RequestPlan> = fc.record({
  method: fc.constant("POST"),
  path: fc.constant("/v1/signals"),
  query: fc.constant(""),
  credentials: fc.constantFrom(...credentials.filter(({ isGood }) => isGood)),
  mediaType: fc.constantFrom(...mediaTypes.filter(({ isGood }) => isGood)),
  noise: fc.constant([]),
  body: hostileBody,
  chunkSize: fc.option(fc.constantFrom(16, 100, 4_000), { freq: 6 }),
});

/** The bytes of the request of this number, and what they must come to. */
export function compose(plan: RequestPlan, keys: Keys, number: number): Composed {
  const { method, path, query: search, chunkSize } = plan;
  const mark = search === "" ? "" : `${marker("query", number)}${keys.unknown}`;
  const head = [
    `${method} ${path}${search}${mark} HTTP/1.1`,
    `Host: ${HOST}`,
    `Cookie: session=${marker("header", number)}; password=${marker("header", number)}`,
    ...plan.noise,
    ...plan.credentials.write(keys),
    ...plan.mediaType.write(keys),
  ];
  const body = bodyOf(plan.body, marker("body", number));
  const message = messageOf(`${head.join("\r\n")}\r\n`, body, chunkSize);
  const request = { method, path: documentedPath(method, path) };
  const verdict = judge(body);
  const early = earlyStatus(plan, request);
  if (early !== null) return { message, request, expected: { status: early }, row: null };
  const row = verdict.status === 201 ? verdict.row : null;
  return { message: { ...message, wait: verdict.status === 413 }, request, expected: verdict, row };
}

const methodsOf = { "/v1/signals": ["POST"], "/openapi.yaml": ["GET", "HEAD"] };

/**
 * A route is found by the path as it was sent. Only a method that it does not take is told by the URL,
 * in which Bun has resolved dots and turned backslashes.
 */
function documentedPath(method: string, path: string): Request["path"] {
  const { pathname } = new URL(`http://${HOST}${path.replaceAll("#", "%23")}`);
  if (pathname !== "/v1/signals" && pathname !== "/openapi.yaml") return "/nowhere";
  return path === pathname || !methodsOf[pathname].includes(method) ? pathname : "/nowhere";
}

/** The status of a request that does not get as far as its body, or null. */
function earlyStatus(plan: RequestPlan, { method, path }: Request): number | null {
  if (path === "/nowhere") return 404;
  if (path === "/openapi.yaml") return method === "GET" || method === "HEAD" ? 200 : 405;
  if (method !== "POST") return 405;
  if (!plan.credentials.isGood) return 401;
  return plan.mediaType.isGood ? null : 415;
}
