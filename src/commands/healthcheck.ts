/** `signalbox healthcheck`: asks a running server, and tells a supervisor by the exit code. */
import { accessSync, constants } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { systemCode, UserError } from "../domain/errors.ts";
import type { Checks } from "../ops/health.ts";
import { askServer } from "../ops/client.ts";
import { SOCKET_NAME } from "../ops/server.ts";
import { problemOfFolder } from "../store/sqlite/folder.ts";
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

function ask(url: string | undefined, dataDir: string, path: string): Promise<Response> {
  return url === undefined ? askFolder(dataDir, path) : askAddress(url, path);
}

async function askAddress(url: string, path: string): Promise<Response> {
  try {
    return await fetch(new URL(path, url), { signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch {
    throw new UserError(
      `No server answers at ${url}: name the address that serve was given with --ops-listen.`,
    );
  }
}

async function askFolder(dataDir: string, path: string): Promise<Response> {
  const socket = join(dataDir, SOCKET_NAME);
  try {
    // Bun does not say why it cannot connect.
    accessSync(socket, constants.R_OK | constants.W_OK);
    return await askServer(dataDir, path);
  } catch (error) {
    const problem = problemOfFolder(dataDir);
    if (problem !== null) throw problem;
    const code = systemCode(error);
    if (/^E(ACCES|PERM)$/.test(code)) {
      throw new UserError(
        `This user may not ask the server of ${dataDir} (${code}): run signalbox as the user who runs the server.`,
      );
    }
    throw new UserError(
      `No server answers at ${socket}: name the right folder with --data DIR, or start a server`,
      "serve",
    );
  }
}
