/** The programs that the benchmark needs: found, built or installed. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "./options.ts";
import { run } from "./process.ts";
import type { ServerName } from "./servers.ts";

const projectFolder = join(import.meta.dir, "..");
const fastifyFolder = join(import.meta.dir, "peers", "fastify");

/** Paths. */
export interface Tools {
  readonly wrk: string;
  readonly signalbox: string;
  readonly fastifyFolder: string;
  readonly node: string;
  /** Null where no fsync is to be slowed down. */
  readonly strace: string | null;
}

/** Builds into `folder`, so that a build that others are running is left alone. */
export async function readyTools(
  only: readonly ServerName[],
  needsStrace: boolean,
  folder: string,
): Promise<Tools> {
  const wrk = find("wrk");
  const strace = needsStrace ? find("strace") : null;
  const signalbox = join(folder, "signalbox");
  if (only.includes("signalbox")) {
    note("building signalbox");
    const build = [process.execPath, "build.ts", "--outfile", signalbox];
    await run(build, { cwd: projectFolder });
  }
  if (only.includes("fastify")) await installFastify();
  return { wrk, strace, signalbox, fastifyFolder, node: findNode() };
}

/** The Node that the peer's package.json pins; on another architecture, the one on PATH. */
export function findNode(): string {
  const pinned = join(fastifyFolder, "node_modules", `node-linux-${process.arch}`, "bin", "node");
  return existsSync(pinned) ? pinned : "node";
}

export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

function find(program: "wrk" | "strace"): string {
  const path = Bun.which(program);
  if (path !== null) return path;
  throw new UsageError(`${program} is missing; install it with: apt-get install ${program}`);
}

async function installFastify(): Promise<void> {
  const installed = join(fastifyFolder, "node_modules", ".package-lock.json");
  const wanted = join(fastifyFolder, "package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(wanted).mtimeMs) return;
  note("installing the Fastify peer (first use)");
  await run(["npm", "ci"], { cwd: fastifyFolder });
}
