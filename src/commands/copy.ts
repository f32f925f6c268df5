/** `signalbox copy` (hidden): the process in which `backup`, `restore` and `serve` copy a database. */
import { setPriority } from "node:os";
import { Command } from "commander";
import { databaseFiles } from "../store/open.ts";
import { printData } from "./print.ts";

/** Lower than the server's. */
const NICENESS = 10;

export function copyCommand(): Command {
  return new Command("copy")
    .description("copy a database file, verified, and print its verification as JSON")
    .argument("<from>")
    .argument("<to>")
    .action(async (from: string, to: string) => {
      lowerPriority();
      printData(JSON.stringify(await databaseFiles.copy(from, to)));
    });
}

function lowerPriority(): void {
  try {
    setPriority(NICENESS);
  } catch {
    // If the system forbids it, a backup at full speed is better than none.
  }
}
