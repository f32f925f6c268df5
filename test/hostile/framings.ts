/**
 * Generated requests of one desk with a request of another desk in them or behind them, framed well
 * or in a way that a proxy and a server may read differently (RFC 9112, 11.2).
 */
import * as fc from "fast-check";
import { send } from "../kit/raw.ts";
import { enter, headOf, overLanes, type Owner, type Target, withLength } from "./target.ts";

interface Framing {
  /** Header lines and body. */
  readonly frame: (body: string) => { lines: string; content: string };
  readonly isClear: boolean;
}

const hex = (text: string): string => text.length.toString(16);
const END = "0\r\n\r\n";
const table = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim().replaceAll("↵", "\r\n").replaceAll("↓", "\n").replaceAll("→", "\t"));

/** `#` is the length of the body. */
const withLengths = (isClear: boolean, text: string, off = 0): Framing[] =>
  table(text).map((line) => ({
    frame: (body) => ({ lines: line.replaceAll("#", String(body.length + off)), content: body }),
    isClear,
  }));
const withChunks = (isClear: boolean, all: readonly ((body: string) => string)[]): Framing[] =>
  all.map((encode) => ({
    frame: (body) => ({ lines: "Transfer-Encoding: chunked", content: encode(body) }),
    isClear,
  }));

const clear: Framing[] = [
  ...withLengths(
    true,
    `Content-Length: #
    content-length:#
    Content-Length: 0#
    Content-Length: #↵Content-Length: #
    Content-Length: #↵Content_Length: 3↵X-A: y`,
  ),
  ...withChunks(true, [
    (body) => `${hex(body)}\r\n${body}\r\n${END}`,
    (body) => `000${hex(body)};a=b\r\n${body}\r\n00\r\n\r\n`,
    (body) => `${Array.from(body, (one) => `1\r\n${one}\r\n`).join("")}${END}`,
  ]),
];

const unclear: Framing[] = [
  ...[-40, -2, 2, 40].flatMap((off) => withLengths(false, "Content-Length: #", off)),
  ...withLengths(
    false,
    `Content-Length: #↵Content-Length: 3
    Content-Length: 0↵Content-Length: #
    Content-Length: #, 0
    Content-Length: +#
    Content-Length: 0x#
    Content-Length: #.0
    Content-Length: "#"
    Content-Length: 18446744073709551616
    Content-Length:
    Content-Length : #
    X-A: y↵ Content-Length: #
    X-A: y↓Content-Length: #
    Content-Length: #↵Transfer-Encoding: chunked
    Transfer-Encoding: chunked↵Content-Length: #
    Content-Length: #↵Transfer-Encoding: x
    Content-Length: #↵Transfer-Encoding:→chunked
    Content-Length: #↵Transfer-Encoding : chunked
    Content-Length: #↵X-A: y↵ Transfer-Encoding: chunked
    Content-Length: #↵X-A: y↓Transfer-Encoding: chunked
    Transfer-Encoding: identity↵Content-Length: #
    Transfer-Encoding: gzip, chunked
    Transfer-Encoding: chunked, gzip
    Transfer-Encoding: chunked↵Transfer-Encoding: chunked
    Transfer-Encoding: xchunked`,
  ),
  ...withChunks(false, [
    (body) => `${hex(body)}\n${body}\n0\n\n`,
    (body) => `${hex(body)};a\n${body}\r\n${END}`,
    (body) => `${hex(body)};a="\r\n"\r\n${body}\r\n${END}`,
    (body) => `${hex(body)}\r\n${body}${END}`,
    (body) => `+${hex(body)}\r\n${body}\r\n${END}`,
    (body) => `0x${hex(body)}\r\n${body}\r\n${END}`,
    (body) => `1${hex(body).padStart(16, "0")}\r\n${body}\r\n${END}`,
    (body) => `zz\r\n${body}\r\n${END}`,
    (body) => `${(body.length - 1).toString(16)}\r\n${body}\r\n${END}`,
    (body) => `${(body.length + 1).toString(16)}\r\n${body}\r\n${END}`,
  ]),
];

/**
 * `inside`: the other desk's request is the body. `behind`: it follows at once. `after`: it follows the
 * answer, as on a connection that a proxy keeps.
 */
export const hostileFraming = fc.record({
  framing: fc.oneof(fc.constantFrom(...clear), fc.constantFrom(...unclear)),
  inner: fc.constantFrom("none" as const, "inside" as const, "behind" as const, "after" as const),
  isKnown: fc.constantFrom(true, true, true, false),
  cuts: fc.array(fc.nat(), { maxLength: 3 }),
});
type HostileFraming = typeof hostileFraming extends fc.Arbitrary<infer T> ? T : never;

export async function sendFramings(
  target: Target,
  framings: readonly HostileFraming[],
): Promise<void> {
  const { alpha, beta } = target;
  await overLanes(framings, (framing, index) =>
    sendFraming(target, framing, index % 2 === 0 ? [alpha, beta] : [beta, alpha], index),
  );
}

async function sendFraming(
  target: Target,
  plan: HostileFraming,
  [outer, inner]: readonly [Owner, Owner],
  index: number,
): Promise<void> {
  const name = `framing ${index}`;
  const innerBody = signalOf(`${name}, inner`);
  const innerRequest = withLength(`${headOf(inner)}Connection: close\r\n`, innerBody).toString();
  const outerBody = plan.inner === "inside" ? innerRequest : signalOf(name).toString();
  const { lines, content } = plan.framing.frame(outerBody);
  const start = headOf(plan.isKnown ? outer : { ...outer, key: "sbk_" });
  const behind = plan.inner === "behind" ? innerRequest : "";
  const bytes = Buffer.from(`${start}${lines}\r\n\r\n${content}${behind}`);
  const after = plan.inner === "after" ? [hasAnswered, innerRequest] : [];
  const requests = plan.inner === "behind" || plan.inner === "after" ? 2 : 1;
  const { responses } = await send(target.port, [...cutAt(bytes, plan.cuts), ...after], {
    responses: requests,
    halfClose: !plan.framing.isClear,
  });
  for (const one of responses) enter(target, name, { method: "POST", path: "/v1/signals" }, one);
  const statuses = responses.map(({ status }) => status);
  if (plan.framing.isClear && plan.inner !== "inside") {
    const sent = { name, owner: outer, body: Buffer.from(outerBody) };
    const other = { name: `${name}, inner`, owner: inner, body: innerBody };
    if (plan.isKnown) target.ledger.enter(sent, responses[0] ?? null);
    if (requests === 2) target.ledger.enter(other, responses[1] ?? null);
    // Two requests at once may go unanswered; the others may not.
    const wanted = [plan.isKnown ? 201 : 401, 201].slice(0, requests);
    const expected = plan.inner === "behind" ? wanted.slice(0, statuses.length) : wanted;
    if (statuses.join() === expected.join()) return;
  } else if (!statuses.some((status) => status < 300)) return;
  target.problems.push(`${name}: ${statuses.join()} to ${JSON.stringify(bytes.toString())}`);
}

function hasAnswered(text: string): boolean {
  return text.startsWith("HTTP/1.1 ");
}

function signalOf(clientId: string): Buffer {
  return Buffer.from(
    `{"source":"venue_2","type":"crypto","symbol":"X","side":"open","client_signal_id":"${clientId}"}`,
  );
}

function cutAt(bytes: Buffer, cuts: readonly number[]): Uint8Array[] {
  const places = cuts.map((cut) => cut % bytes.length).toSorted((a, b) => a - b);
  return [0, ...places].map((start, index) => bytes.subarray(start, places[index] ?? bytes.length));
}
