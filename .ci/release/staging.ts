/**
 * Files laid out for packing. Names, permissions and times depend only on what is packed: not on the folder, the
 * user, the umask or the clock.
 */
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

export interface Entry {
  /** In the archive. */
  readonly path: string;
  /** The file to copy, or what it contains. */
  readonly from: string | { readonly text: string | Uint8Array };
  readonly mode: 0o755 | 0o644;
}

/** Fills a new folder. `timeS`: epoch seconds. */
export function stage(folder: string, entries: readonly Entry[], timeS: number): void {
  mkdirSync(folder, { recursive: true });
  for (const { path, from, mode } of entries) {
    const to = join(folder, path);
    mkdirSync(dirname(to), { recursive: true });
    if (typeof from === "string") copyFileSync(from, to);
    else writeFileSync(to, from.text);
    chmodSync(to, mode);
    utimesSync(to, timeS, timeS);
  }
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) settle(join(entry.parentPath, entry.name), timeS);
  }
  settle(folder, timeS);
}

function settle(folder: string, timeS: number): void {
  chmodSync(folder, 0o755);
  utimesSync(folder, timeS, timeS);
}

/** Packs a staged folder, with its name, into a `.tar.gz`. */
export async function archive(folder: string, file: string): Promise<void> {
  const tar = ["tar", "--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0"];
  const where = [`--directory=${dirname(folder)}`, folder.slice(dirname(folder).length + 1)];
  const packed = await run([...tar, "--numeric-owner", ...where]);
  // Without gzip's name and time, and in the same words everywhere: by the Bun that is pinned.
  await Bun.write(file, Bun.gzipSync(packed));
}

/** Runs a program to its end, and returns its output. Throws if it fails. */
export async function run(
  command: string[],
  { cwd = ".", env = {} }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const child = Bun.spawn(command, {
    cwd,
    env: { ...process.env, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([
    new Response(child.stdout).bytes(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")} failed: ${errors}`);
  return output;
}
