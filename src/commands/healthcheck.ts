/** `signalbox healthcheck`: asks a running server; a supervisor reads the exit code. */
import { accessSync, constants } from "node:fs";
import { join, resolve } from "node:path";
import { Argument, Option } from "commander";
import { describeService } from "../checks/service.ts";
import type { Readiness } from "../checks/table.ts";
import { systemCode, UserError } from "../lib/errors.ts";
import { askServer } from "../ops/client.ts";
import { SOCKET_NAME } from "../ops/server.ts";
import { problemOfFolder } from "../store/open.ts";
import { type DataOptions, defineCommand } from "../cli/define.ts";
import { readUrl } from "../cli/options.ts";
import { printData } from "../cli/print.ts";

const TIMEOUT_MS = 5_000;

export const healthcheckCommand = defineCommand({
  name: "healthcheck",
  description: "check a running server: exit code 0 if it can store signals",
  arguments: [
    new Argument(
      "[url]",
      "the address of --ops-listen (default: the socket in the data folder)",
    ).argParser((text) => readUrl(text, "http://127.0.0.1:8083")),
  ],
  options: [new Option("--live", "check only that the process is alive")],
  adds: "folder",
  examples: [
    "signalbox healthcheck --data /var/lib/signalbox",
    "signalbox healthcheck http://127.0.0.1:8083 --live",
  ],
  run: async ({ live, folder }: DataOptions & { live?: true }, url: string | undefined) => {
    const path = live ? "/healthz" : "/readyz";
    const answer =
      url === undefined ? await askFolder(resolve(folder), path) : await askAddress(url, path);
    const { status, checks = {} } = await readHealth(answer);
    printData(status);
    for (const [name, { ok, detail }] of Object.entries(checks)) {
      printData(`${name}: ${ok ? "ok" : "failing"} (${detail})`);
    }
    if (!answer.ok) throw new UserError("The server is not ready: see its log for the reason.");
  },
});

async function readHealth(answer: Response) {
  const body: unknown = await answer.json().catch(() => null);
  if (typeof body === "object" && body !== null && "status" in body) {
    return body as { readonly status: string; readonly checks?: Readiness["checks"] };
  }
  throw new UserError(
    "The answer did not come from signalbox's health check: give the address of serve's --ops-listen.",
  );
}

async function askAddress(url: string, path: string): Promise<Response> {
  try {
    return await fetch(new URL(path, url), { signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch {
    throw new UserError(
      `No server answers at ${url}: give the address of serve's --ops-listen, or start a server.`,
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
    const service = await describeService(dataDir);
    if (service !== null) {
      throw new UserError(`No server answers at ${socket}${service.why} Next: ${service.next}`);
    }
    throw new UserError(
      `No server answers at ${socket}: name the right folder with --data DIR, or start a server`,
      "serve",
    );
  }
}
