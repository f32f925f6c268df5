/** The programs that the benchmark needs: found, built or installed. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { run } from "./process.ts";
import { UsageError } from "./usage-error.ts";

const projectFolder = join(import.meta.dir, "..");
const fastifyFolder = join(import.meta.dir, "peers", "fastify");

/** Paths. */
export interface Tools {
  readonly wrk: string;
  /** The command, to which arguments are added. */
  readonly signalbox: readonly string[];
  /** The same for the server alone, where that is to be profiled; none: as the others. */
  readonly serve?: readonly string[];
  readonly fastifyFolder: string;
  readonly node: () => string;
  /** Null where it is not installed, as the next. */
  readonly strace: string | null;
  readonly perf: string | null;
}

/** Builds into `folder`, so that a build that others are running is left alone. */
export async function readyTools(folder: string): Promise<Tools> {
  const wrk = Bun.which("wrk");
  if (wrk === null) throw new UsageError(missing("wrk", "wrk"));
  const signalbox = join(folder, "signalbox");
  note("building signalbox");
  await run([process.execPath, "build.ts", "--outfile", signalbox], { cwd: projectFolder });
  return {
    wrk,
    signalbox: [signalbox],
    fastifyFolder,
    node: findNode,
    strace: Bun.which("strace"),
    perf: Bun.which("perf"),
  };
}

/** Sources instead of the executable: only so does Bun profile its main thread. */
export const signalboxFromSource: readonly string[] = [
  process.execPath,
  join(projectFolder, "src", "main.ts"),
];

/** The Node that the peer's package.json pins; on another architecture, the one on PATH. */
export function findNode(): string {
  const pinned = join(fastifyFolder, "node_modules", `node-linux-${process.arch}`, "bin", "node");
  return existsSync(pinned) ? pinned : "node";
}

export function missing(program: string, debianPackage: string): string {
  return `${program} is missing; install it with: apt-get install ${debianPackage}`;
}

export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** On first use, and when what it should be has changed. */
export async function installFastify(tools: Pick<Tools, "fastifyFolder">): Promise<void> {
  const installed = join(tools.fastifyFolder, "node_modules", ".package-lock.json");
  const wanted = join(tools.fastifyFolder, "package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(wanted).mtimeMs) return;
  note("installing the Fastify peer (first use)");
  await run(["npm", "ci"], { cwd: tools.fastifyFolder });
}
