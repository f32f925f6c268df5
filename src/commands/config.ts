/** `signalbox config`: each setting of `serve`, and where its value comes from. */
import type { Command } from "commander";
import { defineCommand } from "../cli/define.ts";
import { jsonOption } from "../cli/options.ts";
import { printList, printNote } from "../cli/print.ts";
import { describeSettings } from "./serve/describe-settings.ts";
import { serveSettings } from "./serve/settings.ts";
import { describeUnknownSettings } from "./serve/unknown-settings.ts";

export function configCommand(): Command {
  const typed = new Map<string, string[]>();
  const command = defineCommand({
    name: "config",
    description: "show each setting of serve, and where its value comes from",
    options: [...serveSettings(), jsonOption()],
    notes: `
Takes the flags of serve: give the ones that you start it with. A running server keeps the settings
that it was started with. A password in --store is not shown.`,
    examples: [
      "signalbox config",
      "SIGNALBOX_LISTEN=127.0.0.1:9000 signalbox config --backup-dir /backup",
      `signalbox config --json | jq -r '.[] | select(.flag == "--listen").value'`,
    ],
    run: ({ json }: { json?: true }, shown: Command) => {
      printList(describeSettings(shown, typed), {
        json,
        none: "",
        columns: {
          FLAG: { cell: ({ flag }) => flag, whole: true },
          VALUE: ({ value }) => value ?? "-",
          FROM: ({ source }) => source,
          VARIABLE: { cell: ({ variable }) => variable, leaveOut: 1 },
        },
      });
      const unknown = describeUnknownSettings();
      if (unknown !== null) printNote(unknown);
    },
  })();
  for (const option of command.options) {
    const name = option.attributeName();
    // Null: a switch.
    command.on(`option:${option.name()}`, (text: string | null) => {
      typed.set(name, [...(typed.get(name) ?? []), text ?? ""]);
    });
  }
  return command;
}
