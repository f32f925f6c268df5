/** `signalbox completion`: the script that completes commands and flags in a shell. */
import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";
import bashScript from "./completion.bash" with { type: "text" };
import { findNames, type Names, noNames } from "./names.ts";
import { completedBy } from "../../cli/options.ts";
import { printData } from "../../cli/print.ts";

const SHELLS = ["bash", "zsh", "fish"];

/** Also adds the hidden command that the scripts ask. Call it when the program has all other commands. */
export function addCompletion(program: Command): void {
  const words = tab(program, { completionCommandName: "completion" });
  const shell = words.commands.get("completion")?.arguments.get("shell");
  if (shell !== undefined) {
    shell.handler = (complete) => {
      for (const name of SHELLS) complete(name, "");
    };
  }
  completeNames(program, words);
  const completion = program.commands.find((command) => command.name() === "completion");
  completion?.description("print the script that completes commands and flags in a shell");
  completion?.registeredArguments[0]?.choices(SHELLS);
  // The library's script for bash hands the line to `eval`, so that TAB would run what is in it.
  completion?.action((name: string) => {
    if (name === "bash") printData(bashScript);
    else words.setup("signalbox", "signalbox", name);
  });
  completion?.addHelpText(
    "after",
    `
Add one of these lines to the shell's file, and start a new shell:
  ~/.bashrc                   source <(signalbox completion bash)
  ~/.zshrc, behind compinit   source <(signalbox completion zsh)
  ~/.config/fish/config.fish  signalbox completion fish | source

Example:
  $ signalbox completion bash`,
  );
}

type Words = ReturnType<typeof tab>;

/** Offers desks and keys where they are arguments, or values of options. */
function completeNames(program: Command, words: Words): void {
  let names: Names = noNames;
  for (const [path, command] of commandsOf(program)) {
    const known = words.commands.get(path);
    for (const value of [...command.registeredArguments, ...command.options]) {
      const by = completedBy.get(value);
      const offered =
        "long" in value ? known?.options.get(value.name()) : known?.arguments.get(value.name());
      if (by === undefined || offered === undefined) continue;
      offered.handler = (complete) => {
        for (const [name, description] of names[by]) complete(name, description);
      };
    }
  }
  // The library asks for the names at once, so they are read before.
  program.commands
    .find((command) => command.name() === "complete")
    ?.action(async (typed: string[]) => {
      names = await findNames(typed);
      words.parse(typed);
    });
}

/** `key mint` → its command. */
function commandsOf(command: Command, path: readonly string[] = []): [string, Command][] {
  return command.commands.flatMap((child) => {
    const own = [...path, child.name()];
    return [[own.join(" "), child] as [string, Command], ...commandsOf(child, own)];
  });
}
