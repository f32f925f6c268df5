/** Sends the hand-written requests, and enters what comes of them. */
import { byRuntime, isByRuntime, problemOf, type Request } from "./answers.ts";
import type { Reply } from "./connections.ts";
import { type Conversation, converse } from "./conversation.ts";
import type { Submitted } from "./ledger.ts";
import { HOST, secondRequest } from "./messages.ts";
import { rowOf } from "./oracle.ts";
import type { Report } from "./report.ts";
import { marker } from "./secrets.ts";
import type { Smuggling } from "./smuggling.ts";
import type { Target } from "./target.ts";

export async function sendSmugglings(
  target: Target,
  smugglings: readonly Smuggling[],
  report: Report,
): Promise<void> {
  await Promise.all(smugglings.map((one, number) => sendSmuggling(target, one, number, report)));
}

async function sendSmuggling(
  { port, alpha: outer, beta: inner }: Target,
  smuggling: Smuggling,
  number: number,
  report: Report,
): Promise<void> {
  const { name, pieces, isPipelined = false } = smuggling;
  const [body, hidden] = [signalOf(number, "outer"), signalOf(number, "inner")];
  const attack = { outer, inner, body, whole: secondRequest(inner.key, hidden) };
  const conversation = await converse(port, pieces(attack), { isLast: !isPipelined });
  for (const reply of conversation.replies) report.enter(name, reply, replyProblem(reply));
  if (conversation.replies.length === 0) report.enter(name, null, null);
  enterStored(report, smuggling, conversation, {
    outer: { name, ...outer, row: rowOf(body) },
    inner: { name: `${name}, inner`, ...inner, row: rowOf(hidden) },
  });
}

function enterStored(
  { ledger, problems }: Report,
  { name, want, stored, isPipelined = false, isLost = false }: Smuggling,
  { replies, end }: Conversation,
  submitted: Readonly<Record<"outer" | "inner", Submitted>>,
): void {
  const got = replies.map(signed);
  const expected = isPipelined ? want.slice(0, got.length) : want;
  const isFitting = got.join() === expected.join() || (isLost && got.length === 0);
  if (!isFitting || end === "open")
    problems.push(`${name}: ${got.join()} ${end}, not ${want.join()}`);
  const created = replies.filter(({ status }) => status === 201);
  for (const [index, which] of stored.entries()) {
    const reply = created[index];
    if (reply !== undefined) ledger.answered(submitted[which], reply);
    else if (isPipelined) ledger.unanswered(submitted[which]);
  }
}

/** Bun's own have a minus. */
function signed({ status, headers }: Reply): number {
  return headers.has("x-request-id") ? status : -status;
}

function replyProblem(reply: Reply): string | null {
  if (!reply.headers.has("x-request-id")) {
    return isByRuntime("any", reply) ? null : `is none of ${Object.keys(byRuntime).join()}`;
  }
  return problemOf(requestOf(reply), reply, { status: reply.status });
}

/** The statuses tell what was asked for: see the table. */
function requestOf({ status }: Reply): Request {
  if (status === 404) return { method: "GET", path: "/nowhere" };
  if (status === 405) return { method: "GET", path: "/v1/signals" };
  if (status === 200) return { method: "GET", path: "/openapi.yaml" };
  return { method: "POST", path: "/v1/signals" };
}

/** In its metadata is the text of a request, for a server that loses its place. */
function signalOf(number: number, which: string): string {
  const text = `\r\n0\r\n\r\nPOST /v1/signals HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 2\r\n\r\n{}`;
  return JSON.stringify({
    source: "venue_2",
    type: "crypto",
    symbol: which,
    side: "open",
    client_signal_id: `${marker("body", number)}${which}`,
    metadata: { text },
  });
}
