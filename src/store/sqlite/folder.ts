/** The data folder and the modes of what is in it. */
import { chmodSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { UserError, systemCode } from "../../domain/errors.ts";

export const DATABASE_NAME = "signalbox.db";

/** Where a restore prepares the database that will take the place of this one. */
export function restoringPath(path: string): string {
  return `${path}.restoring`;
}

/** Hears, in a sentence, of a mode that let others in and was closed. */
export type OnTightened = (sentence: string) => void;

/** For whoever has nothing better to say it with: nothing is repaired in silence. */
export const sayOnStderr: OnTightened = (sentence) => void process.stderr.write(`${sentence}\n`);

/**
 * The folder is 0700. One that was there before is only tightened where it is plainly ours (empty,
 * or with our database in it): nobody's home folder changes because of a stray `--data .`.
 */
export function prepareFolder(dataDir: string, onTightened: OnTightened): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const entries = readdirSync(dataDir);
    const isOurs = entries.length === 0 || entries.includes(DATABASE_NAME);
    if (isOurs) tighten(dataDir, 0o700, onTightened);
  } catch (error) {
    throw new UserError(
      `The data folder ${dataDir} cannot be used (${systemCode(error)}): name a folder that this user may write to, with --data DIR.`,
    );
  }
}

/** Takes every right of group and others away where there is one. */
export function tighten(path: string, mode: number, onTightened: OnTightened): void {
  const before = statSync(path).mode & 0o7777;
  if ((before & 0o077) === 0) return;
  chmodSync(path, mode);
  onTightened(`${path} was open to other users (mode ${octal(before)}); it is ${octal(mode)} now`);
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}
