/** Runs a command line, and shows its errors with what to type next. */
import { Command, CommanderError } from "commander";
import { UsageError } from "../lib/errors.ts";
import { redactKeys } from "../domain/key/key.ts";
import { fatalLine } from "../lib/log.ts";
import { OutputError, writeToStderr, writeToStdout } from "../lib/output.ts";
import { explain } from "./hint.ts";
import { dataSetting } from "./setting.ts";

/** 0 success, 1 failure, 2 usage. */
type ExitCode = 0 | 1 | 2;

/** Commander's own shows the help of `key` for `help key mint`. */
export function helpCommand(program: Command): Command {
  return new Command("help")
    .argument("[command...]", "such as: key mint")
    .description("show help for a command")
    .action((words: readonly string[]) => {
      let shown = program;
      for (const word of words) {
        // What follows are arguments, which must not run it.
        if (shown.commands.length === 0) break;
        const child = shown.commands.find((command) => command.name() === word);
        // Commander refuses an unknown command with the nearest name.
        if (child === undefined) return void shown.parse([word], { from: "user" });
        shown = child;
      }
      return shown.help();
    });
}

/** Subcommands do not inherit these settings by themselves. */
export function inherit(command: Command, writeErr: (text: string) => void = writeError): void {
  command
    .exitOverride()
    .configureOutput({ writeOut: writeToStdout, writeErr })
    .showHelpAfterError(`(type "${fullName(command)} --help" for help)`)
    .helpOption("-h, --help", "show help");
  for (const child of command.commands) inherit(child, writeErr);
}

function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

/** Runs one command line and returns the exit code. Never throws. */
export async function run(
  createProgram: (writeErr: (text: string) => void) => Command,
  argv: readonly string[],
): Promise<ExitCode> {
  // Files that we create are for this user only.
  process.umask(0o077);
  let dataDir: string = dataSetting.fallback;
  const isLogged = argv[0] === "serve" && !argv.includes("--check") && !process.stderr.isTTY;
  let said = "";
  const program = createProgram(isLogged ? (text) => (said += text) : writeError);
  program.hook("preAction", (_, command) => {
    const { store, data } = command.opts<{ data?: string; store?: string }>();
    // A flag's URL may be wrong, and must not be shown.
    const isTyped = command.getOptionValueSource("store") === "cli";
    dataDir = (isTyped ? "postgres://" : store) ?? data ?? dataDir;
  });
  try {
    await program.parseAsync([...argv], { from: "user" });
    return 0;
  } catch (error) {
    // Commander has already printed its message, or the help.
    if (error instanceof CommanderError) {
      if (said !== "") writeFatal(said.trimEnd(), dataDir);
      return error.exitCode === 0 ? 0 : 2;
    }
    // As in `signalbox key list | head -3`: the reader does not want more.
    if (error instanceof OutputError && error.code === "EPIPE") return 0;
    if (isLogged) writeFatal(describe(error, dataDir), dataDir);
    else writeError(`signalbox: ${describe(error, dataDir)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

function writeError(text: string): void {
  writeToStderr(withoutKeys(text));
}

/** The log of a server that cannot start. */
function writeFatal(text: string, where: string): void {
  writeToStderr(fatalLine(withoutKeys(text), where));
}

/** Messages repeat what was typed, which may be a key pasted in the wrong place. */
function withoutKeys(text: string): string {
  const ofCommander = /^error: command-argument value ('.*') is invalid for argument '(.*?)'/s;
  return redactKeys(text.replace(ofCommander, "error: $1 is not a valid $2"));
}

/** Only defects of ours get a stack trace, not what the user or the system causes. */
function describe(error: unknown, dataDir: string): string {
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return explain(error, dataDir) ?? `unexpected failure, please report it: ${detail}`;
}
