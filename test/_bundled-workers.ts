/** The threads of servers in a test's own process load one bundled file each, as in the executable: half of the work. */
import { join } from "node:path";
import { bundle } from "../build.ts";

/** For `bun test --preload`. */
export const PRELOAD = "./test/_preload.ts";
export const WORKERS_FOLDER = "SIGNALBOX_TEST_WORKERS";

/** Returns the variable of the environment that tells {@link PRELOAD} where they are. */
export async function bundleWorkers(outdir: string): Promise<Record<string, string>> {
  const entrypoints = bundle.entrypoints.filter((file) => file.endsWith(".worker.ts"));
  await Bun.build({ entrypoints, root: bundle.root, outdir, target: "bun", sourcemap: "inline" });
  return { [WORKERS_FOLDER]: outdir };
}

/** Like `workerUrl` of the source. */
export function bundledWorker(folder: string, path: string): string {
  return Bun.pathToFileURL(join(folder, path.replace(/\.ts$/, ".js"))).href;
}
