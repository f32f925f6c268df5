/** Sends well-framed requests over connections that are kept: each has one answer, and it is foretold. */
import { problemOf } from "./answers.ts";
import { type Connection, overConnections } from "./connections.ts";
import { headOf, messageOf } from "./messages.ts";
import { judge } from "./oracle.ts";
import type { Report } from "./report.ts";
import { compose, type Composed, type RequestPlan } from "./requests.ts";
import { type Owner, type Target, unknownKey } from "./target.ts";
import type { WrittenBody } from "./written.ts";

const CONNECTIONS = 32;

/** The body is that of a plan; everything else, too. */
export async function sendRequests(
  target: Target,
  plans: readonly RequestPlan[],
  report: Report,
): Promise<void> {
  const { alpha, beta, revokedKey: revoked } = target;
  await overConnections(
    target.port,
    CONNECTIONS,
    [...plans.entries()],
    (connection, [number, plan]) => {
      const [owner, other] = number % 2 === 0 ? [alpha, beta] : [beta, alpha];
      const keys = { own: owner.key, other: other.key, revoked, unknown: unknownKey };
      const name = `request ${number} (${plan.body.kind})`;
      return sendOne(connection, { name, ...owner }, compose(plan, keys, number), report);
    },
  );
}

/** Everything but the body is as it should be. */
export async function sendBodies(
  { port, alpha }: Target,
  bodies: readonly WrittenBody[],
  report: Report,
): Promise<void> {
  const head = headOf("POST /v1/signals HTTP/1.1", [
    `Authorization: Bearer ${alpha.key}`,
    "Content-Type: application/json",
  ]);
  await overConnections(port, CONNECTIONS, bodies, (connection, { name, bytes, want }) => {
    const verdict = judge(bytes);
    const message = { ...messageOf(head, bytes, null), wait: want === 413 };
    const row = verdict.status === 201 ? verdict.row : null;
    const request = { method: "POST", path: "/v1/signals" } as const;
    return sendOne(
      connection,
      { name, ...alpha },
      { message, request, expected: verdict, row },
      report,
    );
  });
}

/** One request over a connection, with its answer foretold. */
export async function sendOne(
  connection: Connection,
  submitter: { name: string } & Owner,
  { message, request, expected, row }: Composed,
  report: Report,
): Promise<void> {
  const reply = await connection.exchange(message);
  const problem =
    reply === null ? `no answer, not ${expected.status}` : problemOf(request, reply, expected);
  report.enter(submitter.name, reply, problem);
  if (reply === null || problem !== null || row === null) return;
  report.ledger.answered({ ...submitter, row }, reply);
}
