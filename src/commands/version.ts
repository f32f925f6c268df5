/** `signalbox version`. */
import type { Command } from "commander";
import { VERSION } from "../lib/version.ts";
import { defineCommand } from "../cli/define.ts";
import { printData } from "../cli/print.ts";

export function versionCommand(): Command {
  return defineCommand({
    name: "version",
    description: "print the version",
    examples: ["signalbox version"],
    run: () => printData(`signalbox ${VERSION}`),
  });
}
