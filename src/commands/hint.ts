/** Commands to type next, in errors and notes. */
import { defaults } from "../config.ts";
import { shellQuoted } from "../domain/shell.ts";

/** The command with its program and, unless it is the default, the `--data` that this one was given. */
export function toType(command: string, dataDir: string): string {
  const data = dataDir === defaults.data ? "" : ` --data ${shellQuoted(dataDir)}`;
  return `signalbox ${command}${data}`;
}
