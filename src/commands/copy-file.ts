/** Hidden commands: the processes in which `backup`, `restore` and `serve` read files that may be on a disk that hangs. */
import { Command } from "commander";
import { lowerPriority } from "../lib/priority.ts";
import { databaseFiles } from "../store/open.ts";
import { printData } from "../cli/print.ts";

export function copyFileCommand(): Command {
  return new Command("copy-file")
    .description("copy a database file, verified, and print its verification as JSON")
    .argument("<from>")
    .argument("<to>")
    .argument("<folder>", "a new folder beside <to>, for the time of the copy")
    .argument("[earlier...]", "backups, which must be of the same database, newest first")
    .action(async (from: string, to: string, folder: string, earlier: string[]) => {
      lowerPriority();
      printData(JSON.stringify(await databaseFiles.copy(from, to, earlier, folder)));
    });
}

export function ownBackupCommand(): Command {
  return new Command("own-backup")
    .description("print the first backup that is not of another database, as JSON")
    .argument("<database>")
    .argument("[backups...]", "newest first")
    .action((database: string, backups: string[]) => {
      printData(JSON.stringify(databaseFiles.findOwn(database, backups)));
    });
}

export function drillBackupCommand(): Command {
  return new Command("drill-backup")
    .description("restore a backup, verify it, compare it with the database, and print JSON")
    .argument("<file>")
    .argument("<data>")
    .argument("<folder>", "a new folder, for the time of the drill")
    .action(async (file: string, dataDir: string, folder: string) => {
      lowerPriority();
      printData(JSON.stringify(await databaseFiles.drill(file, dataDir, folder)));
    });
}
