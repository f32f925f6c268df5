/** `signalbox version`. */
import type { Command } from "commander";
import { VERSION } from "../version.ts";
import { defineCommand } from "./define.ts";
import { printData } from "./print.ts";

export function versionCommand(): Command {
  return defineCommand({
    name: "version",
    description: "print the version",
    examples: ["signalbox version"],
    run: () => printData(`signalbox ${VERSION}`),
  });
}
