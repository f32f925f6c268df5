/** The data folder and the modes of what is in it. */
import { chmodSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { UserError, systemCode } from "../../domain/errors.ts";

export const DATABASE_NAME = "signalbox.db";

/**
 * The folder is 0700. One that was there before is only tightened where it is plainly ours (empty,
 * or with our database in it): nobody's home folder changes because of a stray `--data .`.
 */
export function prepareFolder(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const entries = readdirSync(dataDir);
    const isOurs = entries.length === 0 || entries.includes(DATABASE_NAME);
    if (isOurs) tighten(dataDir, 0o700);
  } catch (error) {
    throw new UserError(
      `The data folder ${dataDir} cannot be used (${systemCode(error)}): name a folder that this user may write to, with --data DIR.`,
    );
  }
}

/** Takes every right of group and others away where there is one. */
export function tighten(path: string, mode: number): void {
  if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, mode);
}
