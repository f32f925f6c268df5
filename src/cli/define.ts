/** How a command is declared: its arguments, options and help, and the function that runs it. */
import { Argument, Command, InvalidArgumentError, Option } from "commander";
import { readStoreUrl } from "../lib/store-url.ts";
import { jsonOption } from "./options.ts";
import { dataOption, storeOption } from "./setting.ts";

/** The options that commands for a data folder share. */
export interface DataOptions {
  /** Where the data is, as `store/open.ts` takes it: `--store`, or else `--data`. */
  readonly data: string;
  /** `--data`: the server's own folder. */
  readonly folder: string;
  readonly json?: true;
}

interface Help {
  readonly name: string;
  readonly description: string;
  /** Shown below the options. */
  readonly notes?: string;
  /** Command lines as they are typed. */
  readonly examples: readonly string[];
}

interface CommandDefinition extends Help {
  readonly arguments?: readonly Argument[];
  readonly options?: readonly Option[];
  /** Adds `--data` and `--store`, or these and `--json`. For `folder`, `--store` is not read: it has no effect. */
  readonly adds?: "folder" | "data" | "data and json";
  /**
   * Gets the options, the arguments and the command. Prints data to stdout and notes to stderr. Throws
   * `UserError` for what the user can fix.
   */
  readonly run: (options: never, ...values: never[]) => void | Promise<void>;
}

/** Returns a new command each time: one that has parsed a line keeps its values. */
type CreateCommand = () => Command;

export function defineCommand(definition: CommandDefinition): CreateCommand {
  const { adds, run } = definition;
  const values = (definition.arguments ?? []).map(refusingEmpty);
  const options = [...(definition.options ?? [])];
  if (adds === "data and json") options.push(jsonOption());
  if (adds !== undefined) options.push(dataOption(), storeOption());
  for (const option of options) if (option.required) refusingEmpty(option);
  return () => {
    const command = withHelp(definition);
    for (const value of values) command.addArgument(value);
    for (const option of options) command.addOption(option);
    // Gets the arguments, the options and the command.
    return command.action((...given: unknown[]) =>
      (run as (...all: unknown[]) => void | Promise<void>)(
        readPlace(given.at(-2) as Typed, adds),
        ...given.slice(0, -2),
        command,
      ),
    );
  };
}

interface Typed {
  readonly data: string;
  readonly store?: string;
}

function readPlace(options: Typed, adds: CommandDefinition["adds"]): object {
  if (adds === "folder") return { ...options, folder: options.data };
  const read =
    options.store === undefined ? options : { ...options, store: readStoreUrl(options.store) };
  return adds === undefined ? read : { ...read, data: read.store ?? read.data, folder: read.data };
}

/** After its own reader, whose refusal has an example. An empty value is often a variable that is not set. */
function refusingEmpty<T extends Argument | Option>(value: T): T {
  const read = value.parseArg;
  const isMandatory = value instanceof Option ? value.mandatory : value.required;
  value.parseArg = <Value>(text: string, before: Value) => {
    const result = read === undefined ? (text as Value) : read(text, before);
    if (/\S/.test(text)) return result;
    throw new InvalidArgumentError(
      `It is empty: write a value${isMandatory ? "" : ", or leave it out"}.`,
    );
  };
  return value;
}

/** A command that only has subcommands. */
export function defineGroup(
  definition: Help & { readonly commands: readonly CreateCommand[] },
): CreateCommand {
  return () => {
    const group = withHelp(definition);
    for (const create of definition.commands) group.addCommand(create());
    return group;
  };
}

function withHelp({ name, description, notes, examples }: Help): Command {
  const lines = examples.map((example) => `  $ ${example}`);
  const heading = lines.length === 1 ? "Example:" : "Examples:";
  const below = [...(notes === undefined ? [] : [`${notes.trim()}\n`]), heading, ...lines];
  return new Command(name).description(description).addHelpText("after", `\n${below.join("\n")}`);
}
