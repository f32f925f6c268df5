/** The command to type next, for errors and notes. */
import { defaults } from "../config.ts";
import { shellQuoted } from "../domain/shell.ts";

/** Adds the program and, unless it is the default, the `--data` of the present command. */
export function toType(command: string, dataDir: string): string {
  const data = dataDir === defaults.data ? "" : ` --data ${shellQuoted(dataDir)}`;
  return `signalbox ${command}${data}`;
}
