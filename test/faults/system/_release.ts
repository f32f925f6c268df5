/** Builds releases of this checkout. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { must } from "../kit/debian.ts";

const repository = resolve(import.meta.dir, "../../..");
const LEFT_OUT = new Set([".git", "node_modules", "dist", "data"]);

/** The caller removes it. */
export const work = mkdtempSync(join(tmpdir(), "signalbox-release-test-"));

/** Commits what is in this checkout now to a repository of its own. The same files give the same commit. */
export function copyProject(name: string): string {
  const folder = join(work, name);
  mkdirSync(dirname(folder), { recursive: true });
  cpSync(repository, folder, {
    recursive: true,
    filter: (path) => !LEFT_OUT.has(basename(path)),
  });
  return folder;
}

/** Returns the folder with the files. */
export async function release(folder: string, umask = "022"): Promise<string> {
  const who = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
  const date = "2026-01-01T00:00:00Z";
  const env = { GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date };
  await must(["git", "init", "--quiet"], { cwd: folder });
  await must(["git", "add", "."], { cwd: folder });
  await must(["git", ...who, "commit", "--quiet", "--message=all"], { cwd: folder, env });
  const build = [process.execPath, "run", "release", "--only", "linux-x64"];
  await must(["sh", "-c", `umask ${umask}; exec "$@"`, "sh", ...build], {
    cwd: folder,
    env: { TZ: umask === "022" ? "UTC" : "Asia/Tokyo" },
  });
  return join(folder, "dist/release");
}

export function packageIn(folder: string): string {
  return join(folder, readdirSync(folder).find((name) => name.endsWith(".deb")) ?? "");
}

/** Packs a package again under another version. Building one would take longer, and show no more. */
export async function asVersion(version: string, file: string): Promise<string> {
  const folder = join(work, version);
  const out = join(work, `signalbox_${version}_amd64.deb`);
  await must(["dpkg-deb", "--raw-extract", file, folder]);
  const control = join(folder, "DEBIAN/control");
  writeFileSync(
    control,
    readFileSync(control, "utf8").replace(/^Version: .*$/m, `Version: ${version}`),
  );
  await must(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", folder, out]);
  return out;
}
