/**
 * Generated requests whose bytes may be framed wrongly: where a request ends, and whether another one
 * hides in it or behind it, is what smuggling is about (RFC 9112, 11.2). They go over raw sockets, cut
 * into segments at any place.
 */
import * as fc from "fast-check";
import type { ByRuntime } from "./answers.ts";
import { secondRequest } from "./messages.ts";
import { judge, type Row, rowOf } from "./oracle.ts";
import { marker } from "./secrets.ts";
import type { Owner } from "./target.ts";
import { lines, words } from "./texts.ts";

/** A piece of a request; `is`: why nobody can be sure what it means, and so nothing may come of it. */
interface Piece {
  readonly text: string;
  readonly is?: ByRuntime;
}

/** How the body's end is told, and how many bytes away from it that is; null: not at all. */
interface Length extends Piece {
  readonly off: number | null;
}

interface Chunks {
  readonly encode: (body: string) => string;
  readonly is?: ByRuntime;
}

export interface FramingPlan {
  readonly line: Piece;
  readonly host: Piece;
  readonly isKnown: boolean;
  readonly isJson: boolean;
  readonly extra: Piece;
  readonly framing:
    | { readonly length: Length }
    | { readonly coding: Piece; readonly chunks: Chunks };
  readonly behind: "nothing" | "signal";
  readonly cuts: readonly number[];
}

const good = (texts: readonly string[]): Piece[] => texts.map((text) => ({ text }));
const bad = (is: ByRuntime, texts: readonly string[]): Piece[] =>
  texts.map((text) => ({ text, is }));

/** One in `count` is bad. */
const oneIn = <T extends { is?: ByRuntime }>(count: number, all: readonly T[]) =>
  fc.oneof(
    { weight: count - 1, arbitrary: fc.constantFrom(...all.filter(({ is }) => is === undefined)) },
    { weight: 1, arbitrary: fc.constantFrom(...all.filter(({ is }) => is !== undefined)) },
  );

const requestLines = [
  ...good(
    lines(`
    POST /v1/signals HTTP/1.1
    POST /v1/signals?x=y HTTP/1.1
    POST http://signals.example/v1/signals HTTP/1.1
    POST https://evil.example/v1/signals HTTP/1.1`),
  ),
  ...bad(
    "framing",
    lines(`
    POST v1/signals HTTP/1.1
    POST * HTTP/1.1
    POST ftp://a/v1/signals HTTP/1.1
    POST HTTP/1.1
    ␠POST /v1/signals HTTP/1.1
    PO ST /v1/signals HTTP/1.1
    P0ST /v1/signals HTTP/1.1
    /v1/signals HTTP/1.1
    ␍␊POST /v1/signals HTTP/1.1
    ␖␃␁␀`),
  ),
  ...bad(
    "version",
    lines(`
    POST /v1/signals HTTP/2.0
    POST /v1/signals HTTP/1.10
    POST /v1/signals http/1.1
    POST /v1/signals HTTP/1.1 x
    POST /v1/signals
    POST /v1/ signals HTTP/1.1
    POST /v1/signals␀ HTTP/1.1
    POST /v1/signals␉HTTP/1.1
    POST /v1/signals HTTP/1.1␊X: y`),
  ),
  ...bad(
    "unknown method",
    lines(`
    post /v1/signals HTTP/1.1
    BREW /v1/signals HTTP/1.1`),
  ),
  ...bad("long head", [`POST /v1/signals?${"a".repeat(20_000)} HTTP/1.1`]),
];

/** Lines with their own ends. */
const hosts = [
  ...good(
    lines(`
    Host: signals.example␍␊
    host:signals.example␍␊
    Host: signals.example:443␍␊`),
  ),
  ...bad("framing", [
    "",
    ...lines(`
    Host : signals.example␍␊
    Host: signals.example␊
    ␠Host: signals.example␍␊
    Host␍␊`),
  ]),
];

const extras = [
  ...good([
    "",
    ...lines(`
    X-A: b␍␊
    X-A:␍␊
    X-A: ÿ␍␊
    Content_Length: 3␍␊
    Content-Lengths: 3␍␊
    Transfer_Encoding: chunked␍␊
    TE: chunked␍␊
    Trailer: Content-Length␍␊
    Connection: Content-Length, Transfer-Encoding␍␊`),
  ]),
  ...bad(
    "framing",
    lines(`
    X-A: 1␍␊␠2␍␊
    X-A: 1␍␊␉Content-Length: 3␍␊
    X-A: a␊Content-Length: 3␍␊
    X-A: a␍Content-Length: 3␍␊
    X-A: a␊
    X-A: a␀b␍␊
    X-A: a␁b␍␊
    X-A : b␍␊
    X A: b␍␊
    X-é: b␍␊
    "X": b␍␊
    X[0]: b␍␊
    : b␍␊
    garbage␍␊
    Content-Length: 3␍␊␠␍␊`),
  ),
  ...bad("long head", [`X-A: ${"a".repeat(20_000)}\r\n`, "X-A: b\r\n".repeat(300)]),
];

/** `#` is the length. */
const exact = (pieces: readonly Piece[]): Length[] => pieces.map((piece) => ({ ...piece, off: 0 }));
const lengths: Length[] = [
  ...exact(
    good(
      lines(`
    Content-Length: #
    content-length:#
    CONTENT-LENGTH: ␉# ␉
    Content-Length: 0#
    Content-Length: #␍␊Content-Length: #`),
    ),
  ),
  ...[-40, -2, -1, 1, 2, 40].map((off) => ({ text: "Content-Length: #", off })),
  ...words(`Content-Length:0 Transfer_Encoding:chunked X-Content-Length:9`).map((text) => ({
    text,
    off: null,
  })),
  ...exact(
    bad(
      "framing",
      lines(`
    Content-Length: #␍␊Content-Length: 3
    Content-Length: 3␍␊Content-Length: #
    Content-Length: #␍␊Content-Length: 0#
    Content-Length: #, 3
    Content-Length: #, #
    Content-Length: +#
    Content-Length: -#
    Content-Length: 0x#
    Content-Length: #.0
    Content-Length: #e0
    Content-Length: # #
    Content-Length: #;
    Content-Length: "#"
    Content-Length: #␀
    Content-Length: ␋#
    Content-Length: ²
    Content-Length:
    Content-Length: many
    Content-Length: 18446744073709551616
    Content-Length: 999999999999999999999999999999
    Content-Length : #
    ␠Content-Length: #
    Content-Length:␍␊␠#
    Content-Length: #␊Content-Length: 3
    Content-Length: #␍␊Transfer-Encoding: chunked
    Transfer-Encoding: chunked␍␊Content-Length: #
    Content-Length: #␍␊Transfer-Encoding: x
    Content-Length: #␍␊Transfer-Encoding:
    Transfer-Encoding: identity␍␊Content-Length: #
    Transfer-Encoding : chunked␍␊Content-Length: #`),
    ),
  ),
];

const codings = [
  ...good(
    lines(`
    Transfer-Encoding: chunked
    transfer-encoding:CHUNKED
    Transfer-Encoding: ␉chunked ␉`),
  ),
  ...bad(
    "framing",
    lines(`
    Transfer-Encoding:
    Transfer-Encoding: xchunked
    Transfer-Encoding: chunk
    Transfer-Encoding: identity
    Transfer-Encoding: chunked, identity
    Transfer-Encoding: identity, chunked
    Transfer-Encoding: gzip, chunked
    Transfer-Encoding: chunked, gzip
    Transfer-Encoding: chunked;q=1
    Transfer-Encoding: "chunked"
    Transfer-Encoding: ␋chunked
    Transfer-Encoding: chunked␀
    Transfer-Encoding: chünked
    Transfer-Encoding: chunked␍␊Transfer-Encoding: chunked
    Transfer-Encoding: chunked␍␊Transfer-Encoding: x
    Transfer-Encoding: x␍␊Transfer-Encoding: chunked
    Transfer-Encoding : chunked
    ␠Transfer-Encoding: chunked
    Transfer-Encoding:␍␊␠chunked
    Transfer-Encoding: chunked␊X: y
    X: y␊Transfer-Encoding: chunked
    X: y␍Transfer-Encoding: chunked`),
  ),
];

const hex = (text: string): string => text.length.toString(16);
const last = "0\r\n\r\n";
const chunkings: Chunks[] = [
  { encode: (body) => `${hex(body)}\r\n${body}\r\n${last}` },
  { encode: (body) => `000${hex(body).toUpperCase()}\r\n${body}\r\n000\r\n\r\n` },
  { encode: (body) => `${hex(body)};a=b;c\r\n${body}\r\n0;d\r\n\r\n` },
  { encode: (body) => `${Array.from(body, (one) => `1\r\n${one}\r\n`).join("")}${last}` },
  ...(
    [
      (body) => `${hex(body)}\n${body}\n0\n\n`,
      (body) => `${hex(body)}\n${body}\r\n${last}`,
      (body) => `${hex(body)}\r\n${body}\n${last}`,
      (body) => `${hex(body)};a\n${body}\r\n${last}`,
      (body) => `${hex(body)};a="\r\n"\r\n${body}\r\n${last}`,
      (body) => `${hex(body)}\r\n${body}${last}`,
      (body) => ` ${hex(body)}\r\n${body}\r\n${last}`,
      (body) => `${hex(body)} \r\n${body}\r\n${last}`,
      (body) => `+${hex(body)}\r\n${body}\r\n${last}`,
      (body) => `-${hex(body)}\r\n${body}\r\n${last}`,
      (body) => `0x${hex(body)}\r\n${body}\r\n${last}`,
      (body) => `1${hex(body).padStart(16, "0")}\r\n${body}\r\n${last}`,
      (body) => `\r\n${body}\r\n${last}`,
      (body) => `zz\r\n${body}\r\n${last}`,
      (body) => `${(body.length - 1).toString(16)}\r\n${body}\r\n${last}`,
      (body) => `${(body.length + 1).toString(16)}\r\n${body}\r\n${last}`,
      (body) => `${hex(body)}\r\n${body}\r\n0\n\n`,
    ] as Chunks["encode"][]
  ).map((encode) => ({ encode, is: "framing" as const })),
  {
    encode: (body) => `${hex(body)};${"a".repeat(20_000)}\r\n${body}\r\n${last}`,
    is: "long chunk extension",
  },
  { encode: (body) => `${hex(body)}\r\n${body}\r\n0\r\nX: y\r\n\r\n`, is: "trailers" },
  { encode: (body) => `${hex(body)}\r\n${body}\r\n0\r\nContent-Length: 3\r\n\r\n`, is: "trailers" },
];

export const hostileFraming: fc.Arbitrary<FramingPlan> = fc.record({
  line: oneIn(8, requestLines),
  host: oneIn(10, hosts),
  isKnown: fc.nat({ max: 9 }).map((chance) => chance > 0),
  isJson: fc.nat({ max: 9 }).map((chance) => chance > 0),
  extra: oneIn(6, extras),
  framing: fc.oneof(
    fc.record({ length: oneIn(3, lengths) }),
    fc.record({ coding: oneIn(4, codings), chunks: oneIn(3, chunkings) }),
  ),
  behind: fc.constantFrom("nothing" as const, "signal" as const),
  cuts: fc.array(fc.nat(), { maxLength: 3 }),
});

export interface Framed {
  readonly pieces: readonly Uint8Array[];
  /** Why the service never sees the request. */
  readonly head: ByRuntime | "any" | null;
  /** Why it never sees the whole of the body. */
  readonly body: ByRuntime | null;
  /** What it says otherwise. */
  readonly status: number;
  readonly row: Row | null;
  /** What lies behind the end of the request as told: nothing, the second one, or something else. */
  readonly rest: "nothing" | "signal" | "garbage";
  /** Of the second request, which comes with a key of its own. */
  readonly smuggled: Row;
}

/** The bytes of the exchange of this number: a request of one desk, and may be one of another behind it. */
export function frame(plan: FramingPlan, outer: Owner, inner: Owner, number: number): Framed {
  const own = signalOf(marker("body", number), "outer");
  const smuggled = signalOf(marker("body", number), "smuggled");
  const behind = plan.behind === "nothing" ? "" : secondRequest(inner.key, smuggled);
  const { header, content, length, bodyIs } = framed(plan, own, behind);
  const credentials = plan.isKnown ? `Authorization: Bearer ${outer.key}\r\n` : "";
  const type = `Content-Type: ${plan.isJson ? "application/json" : "text/plain"}\r\n`;
  const head = `${plan.line.text}\r\n${plan.host.text}${plan.extra.text}${credentials}${type}${header}\r\n\r\n`;
  const bytes = Buffer.from(head + content + behind, "latin1");
  const seen = judge(
    Buffer.from(length === null ? own : (content + behind).slice(0, length), "latin1"),
  );
  const early = plan.isKnown ? (plan.isJson ? null : 415) : 401;
  const rest = length === null ? behind : (content + behind).slice(length);
  return {
    pieces: cutAt(bytes, plan.cuts),
    head: headProblem(plan),
    body: bodyIs,
    status: early ?? seen.status,
    row: early === null && seen.status === 201 ? seen.row : null,
    rest: rest === "" ? "nothing" : rest === behind ? "signal" : "garbage",
    smuggled: rowOf(smuggled),
  };
}

/** `length` is how much of what follows the head is its body, and null where chunks tell. */
function framed({ framing }: FramingPlan, body: string, behind: string) {
  if ("chunks" in framing) {
    const { coding, chunks } = framing;
    return {
      header: coding.text,
      content: chunks.encode(body),
      length: null,
      bodyIs: chunks.is ?? null,
    };
  }
  const { text, off } = framing.length;
  // With no length there is no body: the signal behind it comes at once.
  if (off === null)
    return { header: text, content: behind === "" ? body : "", length: 0, bodyIs: null };
  // What is not there cannot be waited for.
  const length = Math.min(body.length + off, body.length + behind.length);
  return { header: text.replaceAll("#", String(length)), content: body, length, bodyIs: null };
}

function headProblem({ line, host, extra, framing }: FramingPlan): Framed["head"] {
  const inFraming = "length" in framing ? framing.length : framing.coding;
  const problems = [line, host, extra, inFraming].flatMap(({ is }) => is ?? []);
  return problems.length > 1 ? "any" : (problems[0] ?? null);
}

function signalOf(mark: string, which: string): string {
  return `{"source":"venue_2","type":"crypto","symbol":"${which}","side":"open","client_signal_id":"${mark}${which}"}`;
}

function cutAt(bytes: Buffer, cuts: readonly number[]): Uint8Array[] {
  const places = cuts.map((cut) => cut % bytes.length).toSorted((a, b) => a - b);
  return [0, ...places].map((start, index) => bytes.subarray(start, places[index] ?? bytes.length));
}
