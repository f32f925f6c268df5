/** Whether the server runs and stores signals. */
import { planConnections } from "../http/limits/connections.ts";
import { readDescriptorsMax } from "../http/sockets.ts";
import { count, formatTime, plural } from "../lib/text/words.ts";
import { isLocked } from "../store/open.ts";
import { VERSION } from "../lib/version.ts";
import { type Context, type Finding, ok, problem, stop, warning } from "./finding.ts";
import { describeService } from "./service.ts";

export async function checkServer({ server, dataDir, toType }: Context): Promise<Finding> {
  if (server === null && isLocked(dataDir)) {
    return problem(
      "A server or a restore uses the data folder, and does not answer.",
      "wait a minute; if it still does not, read its log and restart it",
    );
  }
  if (server === null) {
    const service = await describeService(dataDir);
    return service === null
      ? warning("The server is not running.", toType("serve"))
      : warning(`The server is not running${service.why}`, service.next);
  }
  if (server.version !== VERSION) {
    const sentence = `The server runs version ${server.version}, and this is ${VERSION}.`;
    return warning(sentence, "restart the server");
  }
  return ok(`It runs since ${formatTime(server.started_at)}.`);
}

export function checkWriter({ server }: Context): Finding | null {
  if (server === null) return null;
  const outage = server.outage ?? null;
  if (outage === null) {
    return ok(`Signals are stored${server.database == null ? "" : ` in ${server.database}`}.`);
  }
  return stop(
    `Signals are not being stored since ${formatTime(outage.since)}: ${outage.reason}.`,
    "read the server's log, which says what to do",
  );
}

/** Those that were asked for; `doctor` and each backup look for others. */
export function checkSignals({ server, toType }: Context): Finding | null {
  const [first, ...others] = server?.damaged_signals ?? [];
  if (first === undefined) return null;
  const more = others.length === 0 ? "" : ` and ${count(others.length)} more`;
  return problem(
    `Signal ${first}${more} cannot be read, because what is stored is not what was sent.`,
    `stop the server, then restore a backup (the current database is kept): ${toType("restore FILE --force")}`,
  );
}

/** Signals are taken without it. */
export function checkConsole({ server }: Context): Finding | null {
  if (server === null || server.listen === null || server.console_url === null) return null;
  const reason = server.console_problem ?? null;
  if (reason === null) return ok("It runs.");
  const found = problem(`The console has a problem: ${reason}`, "read the server's log");
  return { ...found, stopsSignals: false };
}

/** The running server's limit, which its supervisor sets, or else this command's. */
export function checkDescriptors({ config, server }: Context): Finding | null {
  if (config === null) return null;
  const max = readDescriptorsMax(server?.pid);
  if (max === null) return ok("Only checked on Linux.");
  const { public: possible } = planConnections(config, { warn: () => {} }, max);
  const sentence = `${count(max)} are allowed, enough for ${plural(possible, "connection")}`;
  if (possible >= config.connectionsMax) return ok(`${sentence}.`);
  return warning(
    `${sentence} of ${count(config.connectionsMax)} (--max-connections).`,
    "raise LimitNOFILE of the service, or ulimit -n, and restart the server",
  );
}
