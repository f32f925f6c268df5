/** `signalbox copy` (hidden): the process in which `backup`, `restore` and `serve` copy a database. */
import { setPriority } from "node:os";
import { Command } from "commander";
import { copyDatabase } from "../store/open.ts";
import { printData } from "./print.ts";

/** A server beside it goes first. */
const NICENESS = 10;

/** Where the system does not allow it, a backup at full speed is better than none. */
function giveWay(): void {
  try {
    setPriority(NICENESS);
  } catch {}
}

export function copyCommand(): Command {
  return new Command("copy")
    .description("copy a database file, verified, and print what is in the copy as JSON")
    .argument("<from>")
    .argument("<to>")
    .action((from: string, to: string) => {
      giveWay();
      printData(JSON.stringify(copyDatabase(from, to)));
    });
}
