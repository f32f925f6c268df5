/** `signalbox completion`: the script that completes commands and flags in a shell. */
import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";
import bashScript from "./completion.bash" with { type: "text" };
import { printData } from "./print.ts";

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
