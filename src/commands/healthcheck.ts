/** `signalbox healthcheck`: asks a running server, and tells a supervisor by the exit code. */
import { join, resolve } from "node:path";
import { Command } from "commander";
import { UserError } from "../domain/errors.ts";
import type { Checks } from "../ops/health.ts";
import { SOCKET_NAME } from "../ops/server.ts";
import { dataOption, readUrl } from "./options.ts";
import { printData } from "./print.ts";

const TIMEOUT_MS = 5_000;

export function healthcheckCommand(): Command {
  return new Command("healthcheck")
    .description("ask a running server how it is: exit code 0 when it can store signals")
    .argument(
      "[url]",
      "the address of --ops-listen; without it, the socket in the data folder is asked",
      readUrl,
    )
    .option("--live", "ask only whether the process is alive")
    .addOption(dataOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ signalbox healthcheck --data /var/lib/signalbox\n  $ signalbox healthcheck http://127.0.0.1:9090 --live",
    )
    .action(async (url: string | undefined, options: { live?: true; data: string }) => {
      const path = options.live ? "/healthz" : "/readyz";
      const answer = await ask(url, resolve(options.data), path);
      const body = await readHealth(answer);
      printData(body.status);
      for (const [name, check] of Object.entries(body.checks ?? {})) {
        printData(`${name}: ${check.ok ? "ok" : "failing"} (${check.detail})`);
      }
      if (!answer.ok) {
        throw new UserError("The server is not ready: its log says more.");
      }
    });
}

interface Health {
  readonly status: string;
  readonly checks?: Checks;
}

async function readHealth(answer: Response): Promise<Health> {
  const body: unknown = await answer.json().catch(() => null);
  if (typeof body === "object" && body !== null && "status" in body) return body as Health;
  throw new UserError(
    "What answers there is not the health of a signalbox: name the address that serve was given with --ops-listen.",
  );
}

async function ask(url: string | undefined, dataDir: string, path: string): Promise<Response> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    if (url !== undefined) return await fetch(new URL(path, url), { signal });
    return await fetch(`http://localhost${path}`, { signal, unix: join(dataDir, SOCKET_NAME) });
  } catch {
    const where = url ?? join(dataDir, SOCKET_NAME);
    throw new UserError(
      `No server answers at ${where}: start one with: signalbox serve, or name the right folder with --data DIR.`,
    );
  }
}
