/**
 * The Bun that goes into an executable. Bun would download it for another platform by itself, but check no hash; so a
 * package manager installs it from `runtimes/`, whose `bun.lock` has the hashes.
 */
import { cpSync } from "node:fs";
import { join, resolve } from "node:path";
import { run } from "./staging.ts";
import type { Target } from "./targets.ts";

const pinned = resolve(import.meta.dir, "runtimes");

/** Returns the path of the executable. `folder`: a new one. */
export async function installRuntime(
  { os, cpu, runtime }: Target,
  folder: string,
): Promise<string> {
  cpSync(pinned, folder, { recursive: true });
  await run([process.execPath, "install", "--frozen-lockfile", `--os=${os}`, `--cpu=${cpu}`], {
    cwd: folder,
    // Hashes are checked when a package is downloaded, not when it is taken from the cache.
    env: { BUN_INSTALL_CACHE_DIR: join(folder, "cache") },
  });
  return join(folder, "node_modules/@oven", runtime, "bin/bun");
}
