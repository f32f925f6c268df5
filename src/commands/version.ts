/** `signalbox version`. */
import { Command } from "commander";
import { VERSION } from "../version.ts";
import { printData } from "./print.ts";

export function versionCommand(): Command {
  return new Command("version")
    .description("print the version")
    .addHelpText("after", "\nExample:\n  $ signalbox version")
    .action(() => printData(`signalbox ${VERSION}`));
}
