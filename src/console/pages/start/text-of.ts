/** Runs when the program is bundled: a file that is also imported as code cannot be imported as text. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The text of a file of `clients/typescript/`. */
export function textOf(file: string): string {
  return readFileSync(join(import.meta.dir, "../../../../clients/typescript", file), "utf8");
}
