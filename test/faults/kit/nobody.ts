/** A user without any rights. */
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../../kit/setup.ts";

export const NOBODY = 65_534;

/** Runs a program as that user, with these options of setpriv(1). */
export function asNobody(options: string, program: string): readonly string[] {
  const user = [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"];
  return ["setpriv", ...user, ...options.split(" "), "--", program];
}

/** A folder of that user, in one of root. */
export function nobodysFolder(): string {
  const outside = temporaryFolder();
  chmodSync(outside, 0o755);
  const own = join(outside, "own");
  mkdirSync(own, { mode: 0o700 });
  chownSync(own, NOBODY, NOBODY);
  return own;
}
