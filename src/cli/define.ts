/** How a command is declared: its arguments, options and help, and the function that runs it. */
import { Argument, Command, InvalidArgumentError, Option } from "commander";
import { jsonOption } from "./options.ts";
import { dataOption } from "./setting.ts";

/** The options that commands for a data folder share. */
export interface DataOptions {
  readonly data: string;
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

interface CommandDefinition<Options, Values extends unknown[]> extends Help {
  readonly arguments?: readonly Argument[];
  readonly options?: readonly Option[];
  /** Adds `--data`, or `--data` and `--json`. */
  readonly adds?: "data" | "data and json";
  /** Prints data to stdout and notes to stderr. Throws `UserError` for what the user can fix. */
  readonly run: (options: Options, ...values: Values) => void | Promise<void>;
}

export function defineCommand<Options, Values extends unknown[]>(
  definition: CommandDefinition<Options, Values>,
): Command {
  const command = withHelp(definition);
  for (const argument of definition.arguments ?? []) command.addArgument(refusingEmpty(argument));
  const options = [...(definition.options ?? [])];
  if (definition.adds === "data and json") options.push(jsonOption());
  if (definition.adds !== undefined) options.push(dataOption());
  for (const option of options) {
    command.addOption(option.required ? refusingEmpty(option) : option);
  }
  return command.action((...given: unknown[]) => {
    const values = given.slice(0, -2) as Values;
    return definition.run(given.at(-2) as Options, ...values);
  });
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
export function defineGroup(definition: Help & { readonly commands: readonly Command[] }): Command {
  const group = withHelp(definition);
  for (const command of definition.commands) group.addCommand(command);
  return group;
}

function withHelp({ name, description, notes, examples }: Help): Command {
  const lines = examples.map((example) => `  $ ${example}`);
  const heading = lines.length === 1 ? "Example:" : "Examples:";
  const below = [...(notes === undefined ? [] : [`${notes.trim()}\n`]), heading, ...lines];
  return new Command(name).description(description).addHelpText("after", `\n${below.join("\n")}`);
}
