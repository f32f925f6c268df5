/** Requests and command lines with a secret in them, in every place where somebody may put one. */
import { HOST } from "./messages.ts";

/** `secret` is what shall be found nowhere; `key` is one that works. */
export interface Plant {
  readonly place: string;
  readonly line?: string;
  readonly headers: readonly string[];
  readonly body: string;
  readonly want: number;
}

const TYPE = "Content-Type: application/json";
const SIGNAL = '{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open"}';

/** Well framed; each with its answer. */
export function plantsOf(secret: string, key: string): Plant[] {
  const authorized = `Authorization: Bearer ${key}`;
  return [
    ...credentials(secret).map(({ place, headers }) => ({
      place,
      headers: [TYPE, ...headers],
      body: SIGNAL,
      want: 401,
    })),
    ...[
      "Cookie",
      "User-Agent",
      "Referer",
      "X-Request-Id",
      "X-Forwarded-For",
      "Accept",
      "X-Token",
    ].map((name) => ({
      place: name,
      headers: [authorized, TYPE, `${name}: ${secret}`],
      body: SIGNAL,
      want: 201,
    })),
    ...[
      ["a header's name", `X-${secret}: x`, 201],
      ["the media type", `Content-Type: ${secret}`, 415],
      ["the charset", `Content-Type: application/json; charset=${secret}`, 415],
      ["the content coding", `Content-Encoding: ${secret}`, 415],
    ].map(([place, header, want]) => ({
      place: String(place),
      headers: [
        authorized,
        ...(String(header).startsWith("Content-Type") ? [] : [TYPE]),
        String(header),
      ],
      body: SIGNAL,
      want: Number(want),
    })),
    ...targets(secret).map(([place, target, want]) => ({
      place,
      line: `${want === 405 ? "PUT" : "POST"} ${target} HTTP/1.1`,
      headers: [authorized, TYPE],
      body: SIGNAL,
      want,
    })),
    ...bodies(secret).map(([place, body, want]) => ({
      place,
      headers: [authorized, TYPE],
      body,
      want,
    })),
  ];
}

function credentials(secret: string): { place: string; headers: string[] }[] {
  return [
    { place: "a key that is not wanted", headers: [`Authorization: Bearer ${secret}x`] },
    { place: "a key twice", headers: [`Authorization: Bearer ${secret} ${secret}`] },
    { place: "a key without a scheme", headers: [`Authorization: ${secret}`] },
    { place: "a scheme", headers: [`Authorization: ${secret} x`] },
    { place: "a user", headers: [`Authorization: Basic ${btoa(`${secret}:`)}`] },
    { place: "a password", headers: [`Authorization: Basic ${btoa(`user:${secret}`)}`] },
    { place: "a proxy's password", headers: [`Proxy-Authorization: Basic ${btoa(`u:${secret}`)}`] },
    { place: "two keys", headers: [`Authorization: Bearer ${secret}x`, `X-API-Key: ${secret}`] },
    { place: "another header's key", headers: [`X-API-Key: Bearer ${secret}`] },
  ];
}

function targets(secret: string): [string, string, number][] {
  return [
    ["a path", `/v1/signals/${secret}`, 404],
    ["a path's beginning", `/${secret}/v1/signals`, 404],
    ["a query", `/v1/signals?key=${secret}`, 201],
    ["a query's name", `/v1/signals?${secret}=1`, 201],
    ["a query, with another method", `/v1/signals?${secret}`, 405],
    ["a user in the absolute form", `http://${secret}:${secret}@${HOST}/v1/signals`, 201],
    ["a host in the absolute form", `http://${secret}.example/v1/signals`, 201],
  ];
}

function bodies(secret: string): [string, string, number][] {
  const more = (member: string): string => `{${member},${SIGNAL.slice(1)}`;
  return [
    ["text", secret, 400],
    ["a string", `"${secret}"`, 400],
    ["an array", `["${secret}"]`, 400],
    ["a word", more(`"metadata":${secret}`), 400],
    ["an unfinished string", `{"symbol":"${secret}`, 400],
    ["a name twice", more(`"${secret}":1,"${secret}":1`), 400],
    ["a name of metadata twice", more(`"metadata":{"${secret}":1,"${secret}":1}`), 400],
    ["a string with a bad escape", more(`"symbol":"${secret}\\x"`), 400],
    ["text behind the object", SIGNAL + secret, 400],
    ["deep metadata", more(`"metadata":{"a":${"[".repeat(40)}"${secret}"`), 400],
    ["an unknown name", more(`"${secret}":1`), 422],
    ["an unknown member", more(`"key":"${secret}"`), 422],
    ["every field", JSON.stringify(Object.fromEntries(FIELDS.map((name) => [name, secret]))), 422],
    ["a long id", more(`"client_signal_id":"${secret.repeat(20)}"`), 422],
    ["an id with a NUL", more(`"client_signal_id":"${secret}\\u0000"`), 422],
    ["metadata of a refused signal", more(`"price":"1","metadata":{"${secret}":"${secret}"}`), 422],
    ["too large a body", secret.padEnd(70_000, secret), 413],
  ];
}

const FIELDS = [
  "source",
  "type",
  "side",
  "direction",
  "price",
  "quantity",
  "signal_time",
  "metadata",
];

/** What no HTTP client sends. Bun answers most of it. */
export function rawPlantsOf(secret: string, key: string): string[] {
  const head = (line: string, ...headers: string[]): string =>
    [line, `Host: ${HOST}`, `Authorization: Bearer ${key}`, TYPE, ...headers, "", ""].join("\r\n");
  const post = "POST /v1/signals HTTP/1.1";
  const chunked = "Transfer-Encoding: chunked";
  return [
    secret,
    `${secret}\r\n\r\n`,
    head(`${secret} /v1/signals HTTP/1.1`),
    head(`POST ${secret} HTTP/1.1`),
    head(`POST /v1/signals ${secret}`),
    head(post, secret),
    head(post, `X-A: a\r\n ${secret}`),
    head(post, `X-A: ${secret}\0`),
    head(post, `Content-Length: ${secret}`),
    head(post, `Transfer-Encoding: ${secret}`),
    head(post, `X-A: ${secret.repeat(300)}`),
    `${head(post, chunked)}${secret}\r\n`,
    `${head(post, chunked)}5;${secret}=${secret}\n`,
    `${head(post, chunked)}0\r\n${secret}: ${secret}\r\n\r\n`,
    `${head(post, "Content-Length: 2")}{}${secret}\r\n\r\n`,
  ];
}

/** Wrong, or in the wrong place: what people do with a key in the clipboard. `DATA` is the data folder. */
export function commandLinesWith(secret: string): string[][] {
  return [
    [secret],
    ["key", secret],
    ["key", "list", secret],
    ["key", "list", "--desk", secret, "--data", "DATA"],
    ["key", "revoke", secret, "--data", "DATA"],
    ["key", "rotate", secret, "--data", "DATA"],
    ["key", "mint", "--desk", secret, "--data", "DATA"],
    ["key", "mint", "--desk", "alpha", "--expires", secret],
    ["desk", "create", secret, "--data", "DATA"],
    ["healthcheck", secret],
    ["healthcheck", `http://127.0.0.1:1/${secret}`],
    ["healthcheck", "--data", secret],
    ["verify", secret],
    ["serve", `--${secret}`],
    ["serve", "--listen", secret],
    ["serve", "--trust-proxy", secret],
    ["serve", "--tls-cert", secret, "--tls-key", secret],
  ];
}

/** Right, and talkative. */
export const listings: readonly string[][] = [
  ["key", "list", "--data", "DATA"],
  ["key", "list", "--json", "--data", "DATA"],
  ["desk", "list", "--json", "--data", "DATA"],
  ["healthcheck", "--data", "DATA"],
];
