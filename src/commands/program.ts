/** The table of commands. */
import { Command } from "commander";
import { defineCommand } from "../cli/define.ts";
import { printData } from "../cli/print.ts";
import { helpCommand, inherit } from "../cli/run.ts";
import { VERSION } from "../lib/version.ts";
import { auditCommand } from "./audit.ts";
import { backupCommand } from "./backup.ts";
import { addCompletion } from "./completion/completion.ts";
import { configCommand } from "./config.ts";
import { copyFileCommand, drillBackupCommand, ownBackupCommand } from "./copy-file.ts";
import { copyCommand } from "./copy.ts";
import { deskCommand } from "./desk.ts";
import { doctorCommand } from "./doctor.ts";
import { healthcheckCommand } from "./healthcheck.ts";
import { keyCommand } from "./key/key.ts";
import { memberCommand } from "./member.ts";
import { notifyCommand } from "./notify.ts";
import { restoreCommand } from "./restore.ts";
import { sendCommand } from "./send/send.ts";
import { serveCommand } from "./serve/serve.ts";
import { signalsCommand } from "./signals/signals.ts";
import { statusCommand } from "./status.ts";
import { verifyCommand } from "./verify.ts";

export function createProgram(writeErr?: (text: string) => void): Command {
  const program = new Command("signalbox")
    .description("Takes trading signals from desks over HTTPS, durably and exactly once.")
    .version(VERSION, "-v, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .addHelpText(
      "after",
      `
Examples:
  $ signalbox serve --quickstart             # creates a desk and a key, and prints a curl command
  $ signalbox desk create alpha
  $ KEY=$(signalbox key mint --desk alpha)
  $ signalbox key list --json
  $ signalbox signals tail --follow
  $ signalbox backup /backup/signalbox.db

Every flag of serve can also be set in the environment, such as SIGNALBOX_LISTEN=127.0.0.1:9000.`,
    );
  const commands = [
    serveCommand,
    statusCommand,
    doctorCommand,
    configCommand,
    deskCommand,
    memberCommand,
    keyCommand,
    notifyCommand,
    signalsCommand,
    auditCommand,
    backupCommand,
    restoreCommand,
    verifyCommand,
    copyCommand,
    sendCommand,
    healthcheckCommand,
    versionCommand,
  ];
  for (const create of commands) program.addCommand(create());
  program.addCommand(copyFileCommand(), { hidden: true });
  program.addCommand(ownBackupCommand(), { hidden: true });
  program.addCommand(drillBackupCommand(), { hidden: true });
  program.addCommand(helpCommand(program));
  addCompletion(program);
  inherit(program, writeErr);
  return program;
}

const versionCommand = defineCommand({
  name: "version",
  description: "print the version",
  examples: ["signalbox version"],
  run: () => printData(`signalbox ${VERSION}`),
});
