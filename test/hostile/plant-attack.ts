/** Puts secrets where they do not belong, on the wire and on the command line. */
import { cli } from "../_cli.ts";
import { temporaryFolder } from "../_setup.ts";
import { sendOne } from "./attack.ts";
import { byRuntime, isByRuntime, type Request } from "./answers.ts";
import { overConnections } from "./connections.ts";
import { converse } from "./conversation.ts";
import { headOf, messageOf } from "./messages.ts";
import { judge } from "./oracle.ts";
import { commandLinesWith, listings, type Plant, plantsOf, rawPlantsOf } from "./plants.ts";
import type { Report } from "./report.ts";
import type { Target } from "./target.ts";

const CONNECTIONS = 8;
/** At once: each is a process. */
const COMMANDS = 3;

export async function plantOnTheWire(
  { port, alpha }: Target,
  secrets: readonly string[],
  report: Report,
): Promise<void> {
  const plants = secrets.flatMap((secret) => plantsOf(secret, alpha.key));
  await overConnections(port, CONNECTIONS, plants, (connection, plant) => {
    const { place, line = "POST /v1/signals HTTP/1.1", headers, want } = plant;
    const body = Buffer.from(plant.body);
    const verdict = judge(body);
    const isRead = [201, 400, 413, 422].includes(want);
    const row = isRead && verdict.status === 201 ? verdict.row : null;
    const message = messageOf(headOf(line, headers), body, null);
    // A verdict of its own, or none: the place is what is wrong then.
    const expected = isRead ? verdict : { status: want };
    if (expected.status !== want) throw new Error(`${place} is meant to be a ${want}`);
    const composed = { message, request: requestOf(plant), expected, row };
    return sendOne(connection, { name: `a secret as ${place}`, ...alpha }, composed, report);
  });
  const raw = secrets.flatMap((secret) => rawPlantsOf(secret, alpha.key));
  await Promise.all(raw.map((text) => sendRaw(port, text, report)));
}

async function sendRaw(port: number, text: string, report: Report): Promise<void> {
  const { replies } = await converse(port, [text], { isOver: true });
  for (const reply of replies) {
    const isOurs = reply.headers.has("x-request-id") && reply.status >= 400;
    const isKnown = isOurs || isByRuntime("any", reply);
    const problem = isKnown ? null : `is none of ${Object.keys(byRuntime).join()}`;
    report.enter("a secret in broken framing", reply, problem);
  }
}

function requestOf({ want }: Plant): Request {
  if (want === 404) return { method: "POST", path: "/nowhere" };
  return { method: want === 405 ? "PUT" : "POST", path: "/v1/signals" };
}

/** All that the commands say is entered as heard. */
export async function plantOnCommandLines(
  { dataDir }: Target,
  secret: string,
  report: Report,
): Promise<void> {
  const cwd = temporaryFolder();
  const commands = [...commandLinesWith(secret), ...listings].values();
  const run = async (): Promise<void> => {
    for (const words of commands) {
      const args = words.map((word) => (word === "DATA" ? dataDir : word));
      const { code, stdout, stderr } = await cli(args, { cwd });
      report.hear(stdout + stderr);
      const isListing = listings.includes(words);
      if ((code === 0) !== isListing) report.problems.push(`${words.join(" ")} ended with ${code}`);
    }
  };
  await Promise.all(Array.from({ length: COMMANDS }, run));
}
