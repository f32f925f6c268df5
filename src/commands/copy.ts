/** `signalbox copy` (hidden): the process in which `backup`, `restore` and `serve` copy a database. */
import { Command } from "commander";
import { lowerPriority } from "../priority.ts";
import { databaseFiles } from "../store/open.ts";
import { printData } from "./print.ts";

export function copyCommand(): Command {
  return new Command("copy")
    .description("copy a database file, verified, and print its verification as JSON")
    .argument("<from>")
    .argument("<to>")
    .argument("[earlier...]", "backups, which must be of the same database, newest first")
    .action(async (from: string, to: string, earlier: string[]) => {
      lowerPriority();
      printData(JSON.stringify(await databaseFiles.copy(from, to, earlier)));
    });
}
