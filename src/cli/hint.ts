/** The command to type next, for errors and notes. */
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { relative } from "node:path";
import { AppError } from "../domain/errors.ts";
import { messageOf, systemCode, UserError } from "../lib/errors.ts";
import { shellQuoted } from "../lib/text/shell.ts";
import { isStoreUrl } from "../lib/place.ts";
import { selfProgram } from "../lib/self.ts";
import { dataSetting } from "./setting.ts";

/** Adds the program and, unless it is the default, the `--data` of the present command. */
export function toType(command: string, dataDir: string): string {
  return `${sudo()}${programName()} ${command}${placeOf(dataDir)}`;
}

/** A URL may have a password, and is in the environment. */
function placeOf(where: string): string {
  const store = process.env["SIGNALBOX_STORE"] ?? "";
  if (where === dataSetting.fallback || where.trim() === store.trim()) return "";
  return isStoreUrl(where) ? " --store URL" : ` --data ${shellQuoted(where)}`;
}

/** A command that was run as another user with sudo is followed by one as that user. */
function sudo(): string {
  if (process.env["SUDO_USER"] === undefined || process.getuid?.() === 0) return "";
  return `sudo -u ${shellQuoted(userInfo().username)} `;
}

/** Explains what the user or the system caused, with what to do. Null for a defect of ours. */
export function explain(error: unknown, dataDir: string): string | null {
  if (error instanceof UserError) {
    const { message, next } = error;
    return next === null ? message : `${message} with: ${toType(next, dataDir)}`;
  }
  if (error instanceof AppError && error.code === "damaged_signal") {
    return `${error.message} To see all damage: ${toType("verify", dataDir)}`;
  }
  const code = systemCode(error);
  if (!/^E[A-Z0-9]+$/.test(code)) return null;
  return `the system refused the operation (${messageOf(error)})${advice[code] ?? ""}`;
}

const advice: Record<string, string> = {
  EACCES: ": run signalbox as the user who owns this file",
  EPERM: ": run signalbox as the user who owns this file",
  ENOSPC: ": free some space on the disk, then try again",
  EDQUOT: ": free some space or raise the quota, then try again",
  EROFS: ": use a folder on a writable disk",
};

/** Throws `UserError` if the folder is missing. */
export function requireFolder(folder: string): void {
  if (existsSync(folder)) return;
  throw new UserError(
    `There is no folder ${folder}: create it with: mkdir -p ${shellQuoted(folder)}`,
  );
}

/** The name of an executable that is on the PATH, otherwise its path, as in `./dist/signalbox`. */
function programName(): string {
  const [program = "", source] = selfProgram();
  if (source !== undefined || Bun.which("signalbox") !== null) return "signalbox";
  const below = relative(process.cwd(), program);
  return shellQuoted(below.startsWith("..") ? program : `./${below}`);
}
