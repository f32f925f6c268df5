/** `signalbox doctor`: looks for what will go wrong, and says what to do about it. */
import { resolve } from "node:path";
import { styleText } from "node:util";
import type { Command } from "commander";
import type { ServeConfig } from "../config.ts";
import { messageOf, UserError } from "../domain/errors.ts";
import { escapeControls } from "../domain/shell.ts";
import { askChecks, askStatus } from "../ops/client.ts";
import { requireDatabase } from "../store/open.ts";
import { defineCommand } from "./define.ts";
import { checks } from "./doctor-checks.ts";
import { type Check, type Facts, type Finding, problem, type Severity } from "./finding.ts";
import { explain } from "./hint.ts";
import { jsonOption } from "./options.ts";
import { plural, printData, printJson } from "./print.ts";
import { readConfig, type ServeOptions, serveSettings } from "./settings.ts";

interface DoctorOptions extends ServeOptions {
  readonly json?: true;
}

const labels = {
  ok: { text: "ok  ", colour: "green" },
  warning: { text: "warn", colour: "yellow" },
  problem: { text: "fail", colour: "red" },
} as const satisfies Record<Severity, object>;

const NAME_WIDTH = Math.max(...Object.keys(checks).map((name) => name.length));

export function doctorCommand(): Command {
  const command: Command = defineCommand({
    name: "doctor",
    description: "look for what will go wrong: exit code 0 without problems",
    options: [...serveSettings(), jsonOption()],
    notes: `
Takes the flags of serve: give the ones that you start it with. Works beside a running server and without
one. Changes nothing, except for a file of 60 KiB in the data folder that measures fsync and is removed.
Reads the newest backup whole.`,
    examples: [
      "signalbox doctor --data /var/lib/signalbox --backup-dir /backup",
      `signalbox doctor --json | jq -r '.[] | select(.severity != "ok").name'`,
    ],
    run: async (options: DoctorOptions) => {
      const facts = await gatherFacts(options, command);
      const findings: (Finding & { readonly name: string })[] = [];
      for (const [name, check] of Object.entries(checks)) {
        const found = { name, ...(await examine(check, facts)) };
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
  return command;
}

async function gatherFacts(options: DoctorOptions, command: Command): Promise<Facts> {
  const config = readConfig(options, command);
  const dataDir = resolve(options.data);
  requireDatabase(dataDir);
  const server = await askStatus(dataDir);
  const health = server === null ? null : await askChecks(dataDir);
  const known = server === null ? config : withoutDefaultPorts(config, command);
  return { data: options.data, config: known, server, health, now: Date.now() };
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

/** One check that cannot be made does not keep the others from being made. */
async function examine(check: Check, facts: Facts): Promise<Finding> {
  try {
    return await check(facts);
  } catch (error) {
    const sentence =
      explain(error, facts.data) ?? `unexpected failure, please report it: ${messageOf(error)}`;
    return problem(sentence);
  }
}

function printFinding({ name, severity, sentence, next }: Finding & { name: string }): void {
  const { text, colour } = labels[severity];
  const label = styleText(colour, text, { stream: process.stdout });
  // A sentence may end with what a program said.
  const end = /[.!?]$/.test(sentence) ? "" : ".";
  const advice = next === null ? "" : `${end} Next: ${next}`;
  printData(`${label}  ${name.padEnd(NAME_WIDTH)}  ${escapeControls(sentence + advice)}`);
}
