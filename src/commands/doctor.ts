/** `signalbox doctor`: looks for what will go wrong, and says what to do about it. */
import { styleText } from "node:util";
import { type Command, Option } from "commander";
import type { ServeConfig } from "../serve/config.ts";
import { type Context, type Finding, type Severity } from "../checks/finding.ts";
import { NAME_WIDTH, runChecks } from "../checks/table.ts";
import { UserError } from "../lib/errors.ts";
import { showHidden } from "../lib/text/hidden.ts";
import { requireStart } from "./serve/check.ts";
import { contextOf } from "./context.ts";
import { defineCommand } from "../cli/define.ts";
import { jsonOption } from "../cli/options.ts";
import { plural, printData, printJson } from "../cli/print.ts";
import { readConfig } from "./serve/read-config.ts";
import { type ServeOptions, serveSettings } from "./serve/settings.ts";
import { requireKnownSettings } from "./serve/unknown-settings.ts";

interface DoctorOptions extends ServeOptions {
  readonly json?: true;
  readonly deep?: true;
}

const labels = {
  ok: { text: "ok  ", colour: "green" },
  warning: { text: "warn", colour: "yellow" },
  problem: { text: "fail", colour: "red" },
} as const satisfies Record<Severity, object>;

export const doctorCommand = defineCommand({
  name: "doctor",
  description: "look for what will go wrong: exit code 0 without problems",
  options: [
    ...serveSettings(),
    new Option(
      "--deep",
      "read all of the database and of the newest backup, however long that takes",
    ),
    jsonOption(),
  ],
  notes: `
Prints a line per check: ok, warn or fail, with what to do. The exit code is 1 if a check fails, otherwise 0.
Takes the flags of serve: give the ones that you start it with. Works beside a running server and without
one. Changes nothing, except for a file of 60 KiB in the data folder that measures fsync and is removed.
Takes at most ten seconds: of a large database it reads a random part, and another one each time.`,
  examples: [
    "signalbox doctor --data /var/lib/signalbox --backup-dir /backup",
    `signalbox doctor --json | jq -r '.[] | select(.severity != "ok").name'`,
  ],
  run: async (options: DoctorOptions, command: Command) => {
    const context = await gather(options, command);
    const findings: (Finding & { readonly name: string })[] = [];
    for await (const found of runChecks("doctor", context)) {
      findings.push(found);
      if (!options.json) printFinding(found);
    }
    if (options.json) printJson(findings);
    const failed = findings.filter(({ severity }) => severity === "problem").length;
    if (failed === 0) return;
    throw new UserError(
      `${plural(failed, "check")} failed: do what the lines above say, then run doctor again.`,
    );
  },
});

async function gather(options: DoctorOptions, command: Command): Promise<Context> {
  const config = readConfig(options, command);
  const context = await contextOf(options.data, options.store);
  const known = context.server === null ? config : withoutDefaultPorts(config, command);
  return {
    ...context,
    config: known,
    isDeep: options.deep === true,
    requireStart: async () => {
      requireKnownSettings();
      await requireStart(known, context.server);
    },
  };
}

/** The server may have been given others in an environment that is not ours, such as a service's. */
function withoutDefaultPorts(config: ServeConfig, command: Command): ServeConfig {
  const anyPort = { host: "127.0.0.1", port: 0 };
  const isDefault = (name: string) => command.getOptionValueSource(name) === "default";
  return {
    ...config,
    listen: isDefault("listen") ? anyPort : config.listen,
    consoleListen: isDefault("consoleListen") ? anyPort : config.consoleListen,
  };
}

function printFinding({ name, severity, sentence, next }: Finding & { name: string }): void {
  const { text, colour } = labels[severity];
  const label = styleText(colour, text, { stream: process.stdout });
  // A sentence may end with what a program said.
  const end = /[.!?]$/.test(sentence) ? "" : ".";
  const advice = next === null ? "" : `${end} Next: ${next}`;
  printData(`${label}  ${name.padEnd(NAME_WIDTH)}  ${showHidden(sentence + advice)}`);
}
