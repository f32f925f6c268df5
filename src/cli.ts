/** The table of commands, and how errors are shown: with what to type next. */
import { Command, CommanderError } from "commander";
import { auditCommand } from "./commands/audit.ts";
import { backupCommand } from "./commands/backup.ts";
import { addCompletion } from "./commands/completion.ts";
import { configCommand } from "./commands/config.ts";
import { copyCommand } from "./commands/copy.ts";
import { deskCommand } from "./commands/desk.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { healthcheckCommand } from "./commands/healthcheck.ts";
import { explain } from "./commands/hint.ts";
import { keyCommand } from "./commands/key.ts";
import { memberCommand } from "./commands/member.ts";
import { restoreCommand } from "./commands/restore.ts";
import { sendCommand } from "./commands/send.ts";
import { serveCommand } from "./commands/serve.ts";
import { signalsCommand } from "./commands/signals.ts";
import { statusCommand } from "./commands/status.ts";
import { verifyCommand } from "./commands/verify.ts";
import { versionCommand } from "./commands/version.ts";
import { defaults } from "./config.ts";
import { UsageError } from "./domain/errors.ts";
import { redactKeys } from "./domain/key.ts";
import { OutputError, writeToStderr, writeToStdout } from "./output.ts";
import { VERSION } from "./version.ts";

/** 0 success, 1 failure, 2 usage. */
type ExitCode = 0 | 1 | 2;

export function createProgram(): Command {
  const program = new Command("signalbox")
    .description("Takes trading signals from desks over HTTPS, durably and exactly once.")
    .version(VERSION, "-v, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show help for a command")
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
    signalsCommand,
    auditCommand,
    backupCommand,
    restoreCommand,
    verifyCommand,
    sendCommand,
    healthcheckCommand,
    versionCommand,
  ];
  for (const create of commands) program.addCommand(create());
  program.addCommand(copyCommand(), { hidden: true });
  addCompletion(program);
  inherit(program);
  return program;
}

/** Subcommands do not inherit these settings by themselves. */
function inherit(command: Command): void {
  command
    .exitOverride()
    .configureOutput({ writeOut: writeToStdout, writeErr: writeError })
    .showHelpAfterError(`(type "${fullName(command)} --help" for help)`)
    .helpOption("-h, --help", "show help");
  for (const child of command.commands) inherit(child);
}

function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

/** Runs one command line and returns the exit code. Never throws. */
export async function run(argv: readonly string[]): Promise<ExitCode> {
  // Files that we create are for this user only.
  process.umask(0o077);
  let dataDir: string = defaults.data;
  const program = createProgram();
  program.hook("preAction", (_, command) => {
    dataDir = command.opts<{ data?: string }>().data ?? dataDir;
  });
  try {
    await program.parseAsync([...argv], { from: "user" });
    return 0;
  } catch (error) {
    // Commander has already printed its message, or the help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    // As in `signalbox key list | head -3`: the reader does not want more.
    if (error instanceof OutputError && error.code === "EPIPE") return 0;
    writeError(`signalbox: ${describe(error, dataDir)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

/** Messages repeat what was typed, which may be a key pasted in the wrong place. */
function writeError(text: string): void {
  const ofCommander = /^error: command-argument value ('.*') is invalid for argument '(.*?)'/s;
  writeToStderr(redactKeys(text.replace(ofCommander, "error: $1 is not a valid $2")));
}

/** Only defects of ours get a stack trace, not what the user or the system causes. */
function describe(error: unknown, dataDir: string): string {
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return explain(error, dataDir) ?? `unexpected failure, please report it: ${detail}`;
}
