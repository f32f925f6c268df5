/**
 * Hand-written requests in which another desk's request hides, and others that no honest client
 * sends: what comes back, in order, and what is stored of the two.
 */
import { HOST } from "./messages.ts";
import type { Owner } from "./target.ts";

/** `400` is the service's own answer, `-400` is Bun's: a status without a body, and the end. */
export interface Smuggling {
  readonly name: string;
  readonly pieces: (attack: Attack) => readonly (string | Uint8Array)[];
  readonly want: readonly number[];
  /** Whose signals the 201s among the answers are for, in order. */
  readonly stored: readonly ("outer" | "inner")[];
  /**
   * A second request that is one in its own right: when it comes too early, Bun closes, and of both
   * the outcome is unknown.
   */
  readonly isPipelined?: boolean;
  /** So much of it is left unread that the reset may overtake the answer (RFC 9112, 9.6). */
  readonly isLost?: boolean;
}

export interface Attack {
  readonly outer: Owner;
  readonly inner: Owner;
  /** A good signal of the outer desk, with a request in its metadata. */
  readonly body: string;
  /** A whole good request of the inner desk. It asks for the connection to be closed. */
  readonly whole: string;
}

const LINE = "POST /v1/signals HTTP/1.1\r\n";
const HOST_LINE = `Host: ${HOST}\r\n`;

/** A request of the outer desk's. Each line ends as it is given. */
function post({ outer }: Attack, lines: string, text: string, start = LINE + HOST_LINE): string {
  return `${start}Authorization: Bearer ${outer.key}\r\nContent-Type: application/json\r\n${lines}\r\n${text}`;
}

const length = (text: string, line = "Content-Length: "): string =>
  `${line}${Buffer.byteLength(text)}\r\n`;
const CHUNKED = "Transfer-Encoding: chunked\r\n";
const chunks = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;

/** Everything in one segment. */
const row = (
  name: string,
  text: (attack: Attack) => string,
  want: readonly number[],
  stored: Smuggling["stored"] = [],
): Smuggling => ({ name, pieces: (attack) => [text(attack)], want, stored });

/** Refused before it is anybody's request. */
const malformed = (name: string, text: (attack: Attack) => string, status = -400): Smuggling =>
  row(name, text, [status]);

const pipelined = (one: Smuggling): Smuggling => ({ ...one, isPipelined: true });

/** Another request's headers, in the value of a header or in a path: `@` is a line's end. */
const injected = "x@Content-Length: 0@@POST /v1/signals HTTP/1.1@";

const differingEnds: Smuggling[] = [
  malformed("a length, then chunks (CL.TE)", (a) =>
    post(a, `Content-Length: 6\r\n${CHUNKED}`, `0\r\n\r\n${a.whole}`),
  ),
  malformed("chunks, then a length (TE.CL)", (a) =>
    post(a, `${CHUNKED}Content-Length: 4\r\n`, chunks(a.whole)),
  ),
  malformed("chunks twice (TE.TE)", (a) => post(a, CHUNKED + CHUNKED, chunks(a.body) + a.whole)),
  malformed("chunks and an unknown coding", (a) =>
    post(a, `${CHUNKED}Transfer-Encoding: cow\r\n`, chunks(a.body) + a.whole),
  ),
  malformed("chunks with a blank before the colon", (a) =>
    post(a, `Transfer-Encoding : chunked\r\n${length(a.body)}`, a.body + a.whole),
  ),
  malformed("chunks behind a folded line", (a) =>
    post(a, `X: y\r\n ${CHUNKED}${length(a.body)}`, a.body + a.whole),
  ),
  malformed("chunks behind a bare line feed", (a) =>
    post(a, `X: y\n${CHUNKED}${length(a.body)}`, a.body + a.whole),
  ),
  malformed("chunks behind a bare carriage return", (a) =>
    post(a, `X: y\r${CHUNKED}${length(a.body)}`, a.body + a.whole),
  ),
  malformed("two lengths, the shorter first", (a) =>
    post(a, `Content-Length: 0\r\n${length(a.body)}`, a.body + a.whole),
  ),
  malformed("two lengths, the longer first", (a) =>
    post(a, length(a.body + a.whole) + length(a.body), a.body + a.whole),
  ),
  malformed("two lengths in a line", (a) =>
    post(a, `Content-Length: ${a.body.length}, 0\r\n`, a.body + a.whole),
  ),
  malformed("a length with a sign", (a) =>
    post(a, length(a.body, "Content-Length: +"), a.body + a.whole),
  ),
  malformed("a length beyond 2^64", (a) =>
    post(a, `Content-Length: ${2n ** 64n + BigInt(a.body.length)}\r\n`, a.body + a.whole),
  ),
  malformed("a chunk beyond 2^64", (a) =>
    post(
      a,
      CHUNKED,
      `1${a.body.length.toString(16).padStart(16, "0")}\r\n${a.body}\r\n0\r\n\r\n${a.whole}`,
    ),
  ),
  malformed("a chunk's line that ends with a bare line feed", (a) =>
    post(a, CHUNKED, `2;\n${a.whole}`),
  ),
  malformed("a chunk's extension with a line's end in it", (a) =>
    post(a, CHUNKED, `5;x="\r\n"\r\nabcde\r\n0\r\n\r\n${a.whole}`),
  ),
  malformed("chunks over HTTP/1.0", (a) =>
    post(a, CHUNKED, chunks(a.body) + a.whole, `POST /v1/signals HTTP/1.0\r\n${HOST_LINE}`),
  ),
  malformed(
    "bare line feeds throughout",
    (a) => post(a, length(a.body), a.body).replaceAll("\r\n", "\n") + a.whole,
    -505,
  ),
];

const hidden: Smuggling[] = [
  row("a request as a body", (a) => post(a, length(a.whole), a.whole), [400, 404]),
  row("a request as a chunk", (a) => post(a, CHUNKED, chunks(a.whole)), [400, 404]),
  row(
    "a request as the body of one without a key",
    (a) => `${LINE}${HOST_LINE}${length(a.whole)}\r\n${a.whole}`,
    [401, 404],
  ),
  row(
    "a request as a chunk of one without a key",
    (a) => `${LINE}${HOST_LINE}${CHUNKED}\r\n${chunks(a.whole)}`,
    [401, 404],
  ),
  row(
    "a request as the body of one of another type",
    (a) => post(a, length(a.whole), a.whole).replace("/json", "/xml"),
    [415, 404],
  ),
  row(
    "a request as the body of one to nowhere",
    (a) => `POST /nowhere HTTP/1.1\r\n${HOST_LINE}${length(a.whole)}\r\n${a.whole}`,
    [404, 404],
  ),
  row(
    "a request as the body of a GET",
    (a) => `GET /v1/signals HTTP/1.1\r\n${HOST_LINE}${length(a.whole)}\r\n${a.whole}`,
    [405, 404],
  ),
  row(
    "a request as a chunk of a GET",
    (a) => `GET /openapi.yaml HTTP/1.1\r\n${HOST_LINE}${CHUNKED}\r\n${chunks(a.whole)}`,
    [200, 404],
  ),
  row(
    "a request where a body that is too large should be",
    (a) => post(a, "Content-Length: 70000\r\n", a.whole),
    [413],
  ),
  row(
    "a request behind chunks that are too large",
    (a) => post(a, CHUNKED, chunks("a".repeat(70_000)) + a.whole),
    [413],
  ),
  row(
    "a request in a path, by escapes",
    (a) =>
      post(
        a,
        length(a.body),
        a.body,
        `POST /v1/signals/${encodeURIComponent(injected.replaceAll("@", "\r\n"))} HTTP/1.1\r\n${HOST_LINE}`,
      ),
    [404, 404],
  ),
  row(
    "a request in a query, by escapes",
    (a) =>
      post(
        a,
        length(a.body),
        a.body,
        `POST /v1/signals?${encodeURIComponent(injected.replaceAll("@", "\r\n"))} HTTP/1.1\r\n${HOST_LINE}`,
      ),
    [201, 404],
    ["outer"],
  ),
  row(
    "a request in a header, by letters that lose a byte",
    (a) => post(a, `X-A: ${injected.replaceAll("@", "\u008d\u008a")}\r\n${length(a.body)}`, a.body),
    [201, 404],
    ["outer"],
  ),
];

const behind: Smuggling[] = [
  pipelined(
    row(
      "a length of nought before a request",
      (a) => post(a, "Content-Length: 0\r\n", a.whole),
      [400, 201],
      ["inner"],
    ),
  ),
  pipelined(row("no length before a request", (a) => post(a, "", a.whole), [400, 201], ["inner"])),
  pipelined(
    row(
      "a GET without a length before a request",
      (a) => `GET /openapi.yaml HTTP/1.1\r\n${HOST_LINE}\r\n${a.whole}`,
      [200, 201],
      ["inner"],
    ),
  ),
  pipelined(
    row(
      "twenty without a key before a request",
      (a) => `${LINE}${HOST_LINE}Content-Length: 0\r\n\r\n`.repeat(20) + a.whole,
      [...Array.from({ length: 20 }, () => 401), 201],
      ["inner"],
    ),
  ),
  pipelined(
    row(
      "an upgrade to WebSocket before a request",
      (a) =>
        `GET /v1/signals HTTP/1.1\r\n${HOST_LINE}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n${a.whole}`,
      [405, 201],
      ["inner"],
    ),
  ),
  pipelined(
    row(
      "an upgrade to HTTP/2 before a request",
      (a) =>
        `GET /v1/signals HTTP/1.1\r\n${HOST_LINE}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n${a.whole}`,
      [405, 201],
      ["inner"],
    ),
  ),
  pipelined(
    row(
      "an expectation before a request",
      (a) => post(a, "Expect: 100-continue\r\nContent-Length: 0\r\n", a.whole),
      [400, 201],
      ["inner"],
    ),
  ),
  pipelined(
    row(
      "a request behind a request",
      (a) => post(a, length(a.body), a.body + a.whole),
      [201, 201],
      ["outer", "inner"],
    ),
  ),
  pipelined(
    row(
      "a request behind chunks",
      (a) => post(a, CHUNKED, chunks(a.body) + a.whole),
      [201, 201],
      ["outer", "inner"],
    ),
  ),
  pipelined(
    row(
      "a request behind one over HTTP/1.0",
      (a) => post(a, length(a.body), a.body + a.whole, `POST /v1/signals HTTP/1.0\r\n${HOST_LINE}`),
      [201],
      ["outer"],
    ),
  ),
  row(
    "a length that ends two bytes early",
    (a) => post(a, `Content-Length: ${a.body.length - 2}\r\n`, a.body),
    [400, -400],
  ),
  row(
    "a length that reaches into the next request",
    (a) => post(a, `Content-Length: ${a.body.length + 9}\r\n`, a.body + a.whole),
    [400, -400],
  ),
];

const heads: Smuggling[] = [
  malformed("no Host", (a) => post(a, length(a.body), a.body, LINE)),
  malformed("a folded key", (a) =>
    post(a, length(a.body), a.body).replace("Bearer ", "Bearer\r\n "),
  ),
  malformed("a second key behind a bare line feed", (a) =>
    post(a, `X: y\nX-API-Key: ${a.inner.key}\r\n${length(a.body)}`, a.body),
  ),
  malformed("a NUL in a name", (a) => post(a, `X\0Y: z\r\n${length(a.body)}`, a.body)),
  malformed(
    "300 headers",
    (a) => post(a, `${"X-A: b\r\n".repeat(300)}${length(a.body)}`, a.body),
    -431,
  ),
  malformed(
    "a header of 20 KB",
    (a) => post(a, `X-A: ${"b".repeat(20_000)}\r\n${length(a.body)}`, a.body),
    -431,
  ),
  {
    ...malformed(
      "a header of a megabyte",
      (a) => post(a, `X-A: ${"b".repeat(1_000_000)}\r\n${length(a.body)}`, a.body),
      -431,
    ),
    isLost: true,
  },
  malformed(
    "a name of 20 KB",
    (a) => post(a, `${"b".repeat(20_000)}: x\r\n${length(a.body)}`, a.body),
    -431,
  ),
  malformed(
    "a key of 20 KB",
    (a) => post(a, length(a.body), a.body).replace("Bearer ", `Bearer ${"0".repeat(20_000)}`),
    -431,
  ),
  malformed(
    "a path of 20 KB",
    (a) => post(a, length(a.body), a.body, `POST /${"b".repeat(20_000)} HTTP/1.1\r\n${HOST_LINE}`),
    -431,
  ),
  malformed(
    "a chunk's extension of 20 KB",
    (a) => post(a, CHUNKED, `5;${"b".repeat(20_000)}\r\nabcde\r\n0\r\n\r\n`),
    -413,
  ),
  malformed("all servers at once", () => `OPTIONS * HTTP/1.1\r\n${HOST_LINE}\r\n`),
  row(
    "180 headers",
    (a) => post(a, `${"X-A: b\r\n".repeat(180)}${length(a.body)}`, a.body),
    [201, 404],
    ["outer"],
  ),
  row(
    "a header of 15 KB",
    (a) => post(a, `X-A: ${"b".repeat(15_000)}\r\n${length(a.body)}`, a.body),
    [201, 404],
    ["outer"],
  ),
  row(
    "two Hosts",
    (a) => post(a, `Host: evil.example\r\n${length(a.body)}`, a.body),
    [201, 404],
    ["outer"],
  ),
  row(
    "the absolute form of another Host",
    (a) =>
      post(
        a,
        length(a.body),
        a.body,
        `POST https://evil.example/v1/signals HTTP/1.1\r\n${HOST_LINE}`,
      ),
    [201, 404],
    ["outer"],
  ),
  row(
    "the absolute form with a user",
    (a) =>
      post(
        a,
        length(a.body),
        a.body,
        `POST http://${a.inner.key}@${HOST}/v1/signals HTTP/1.1\r\n${HOST_LINE}`,
      ),
    [201, 404],
    ["outer"],
  ),
  row(
    "the same length twice",
    (a) => post(a, length(a.body) + length(a.body), a.body),
    [201, 404],
    ["outer"],
  ),
  row(
    "the keys of two desks",
    (a) => post(a, `X-API-Key: ${a.inner.key}\r\n${length(a.body)}`, a.body),
    [401, 404],
  ),
  row(
    "the keys of two desks in one header",
    (a) => post(a, `Authorization: Bearer ${a.inner.key}\r\n${length(a.body)}`, a.body),
    [401, 404],
  ),
  row(
    "a method in a header",
    (a) =>
      post(
        a,
        `X-HTTP-Method-Override: POST\r\n${length(a.body)}`,
        a.body,
        `PUT /v1/signals HTTP/1.1\r\n${HOST_LINE}`,
      ),
    [405, 404],
  ),
  row(
    "a method that nobody knows",
    (a) => post(a, length(a.body), a.body, `BREW /v1/signals HTTP/1.1\r\n${HOST_LINE}`),
    [],
  ),
  row(
    "a method in lower case",
    (a) => post(a, length(a.body), a.body, `post /v1/signals HTTP/1.1\r\n${HOST_LINE}`),
    [],
  ),
];

export const smugglings: readonly Smuggling[] = [...differingEnds, ...hidden, ...behind, ...heads];
