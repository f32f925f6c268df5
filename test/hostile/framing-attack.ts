/** Sends requests whose end is in doubt, each over a connection of its own, and enters what comes of it. */
import { isByRuntime, problemOf } from "./answers.ts";
import type { Reply } from "./connections.ts";
import { type Conversation, converse } from "./conversation.ts";
import { frame, type Framed, type FramingPlan } from "./framings.ts";
import type { Submitted } from "./ledger.ts";
import type { Report } from "./report.ts";
import type { Target } from "./target.ts";

type Sender = Omit<Submitted, "row">;

const CONNECTIONS = 32;

export async function sendFramings(
  target: Target,
  plans: readonly FramingPlan[],
  report: Report,
): Promise<void> {
  const rest = plans.entries();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (const [number, plan] of rest) await sendFraming(target, plan, number, report);
    }),
  );
}

async function sendFraming(
  { port, alpha, beta }: Target,
  plan: FramingPlan,
  number: number,
  report: Report,
): Promise<void> {
  const [outer, inner] = number % 2 === 0 ? [alpha, beta] : [beta, alpha];
  const framed = frame(plan, outer, inner, number);
  const exchange = await converse(port, framed.pieces, {
    isLast: plan.behind === "nothing",
  });
  const name = `framing ${number}`;
  const problems = enterReplies(report, framed, exchange, [
    { name, ...outer },
    { name: `${name}, smuggled`, ...inner },
  ]);
  const sent = Buffer.concat(framed.pieces).toString("latin1");
  report.problems.push(
    ...problems.map((one) => `${name}: ${one}: ${show(exchange)} to ${JSON.stringify(sent)}`),
  );
}

function enterReplies(
  report: Report,
  framed: Framed,
  exchange: Conversation,
  [outer, inner]: readonly [Sender, Sender],
): string[] {
  const { replies } = exchange;
  const own = replies.filter(({ headers }) => headers.has("x-request-id"));
  const byBun = replies.filter(({ headers }) => !headers.has("x-request-id"));
  if (replies.length === 0) report.enter(outer.name, null, null);
  for (const reply of replies) report.enter(outer.name, reply, null);
  const problems = exchange.end === "open" ? ["the connection is still open"] : [];
  if (byBun.length > 1 || byBun.some((reply) => !isByRuntime(blameOf(framed), reply))) {
    problems.push("Bun's answer is not the named one");
  }
  const [first, second, ...more] = own;
  if (more.length > 0 || (framed.head !== null && own.length > 0))
    problems.push("answered too often");
  if (framed.head !== null) return problems;
  problems.push(...firstProblems(report, framed, first, outer));
  return [...problems, ...secondProblems(report, framed, second, inner)];
}

/** The request itself: what it is to be answered with, where its body came to be read. */
function firstProblems(
  { ledger }: Report,
  { status, row, rest, body }: Framed,
  reply: Reply | undefined,
  sender: Sender,
): string[] {
  const isWhole = body === null || body === "trailers";
  if (reply === undefined) {
    const isUnknown = rest !== "nothing" || body === "trailers";
    if (row !== null && isWhole && isUnknown) ledger.unanswered({ ...sender, row });
    return isUnknown || body !== null ? [] : ["no answer"];
  }
  const problem = problemOf({ method: "POST", path: "/v1/signals" }, reply, { status });
  if (problem !== null) return [problem];
  if (row === null) return [];
  if (!isWhole) return ["answered before its body was there"];
  ledger.answered({ ...sender, row }, reply);
  return [];
}

/** What lies behind it: another desk's signal in its own right, our sentinel, or neither. */
function secondProblems(
  { ledger }: Report,
  { rest, body, smuggled: row }: Framed,
  reply: Reply | undefined,
  sender: Sender,
): string[] {
  if (body !== null || rest === "garbage")
    return reply === undefined ? [] : ["garbage was answered"];
  const isSignal = rest === "signal";
  if (reply === undefined) {
    if (isSignal) ledger.unanswered({ ...sender, row });
    return isSignal ? [] : ["the request behind it was not understood"];
  }
  const problem = isSignal
    ? problemOf({ method: "POST", path: "/v1/signals" }, reply, { status: 201 })
    : problemOf({ method: "GET", path: "/nowhere" }, reply, { status: 404 });
  if (problem !== null) return [problem];
  if (isSignal) ledger.answered({ ...sender, row }, reply);
  return [];
}

function blameOf({ head, body, rest }: Framed): Parameters<typeof isByRuntime>[0] {
  return head ?? body ?? (rest === "garbage" ? "any" : "none");
}

function show({ replies, end }: Conversation): string {
  return `${replies.map(({ status }) => status).join()} ${end}`;
}
