/** The manual page signalbox(1), from the definitions of the commands. */
import type { Command } from "commander";

/** `timeS`: epoch seconds. */
export function manualPage(program: Command, version: string, timeS: number): string {
  const date = new Date(timeS * 1_000).toISOString().slice(0, "2026-01-01".length);
  const commands = leavesOf(program);
  return [
    `.TH SIGNALBOX 1 "${date}" "signalbox ${version}" "User Commands"`,
    // Names of variables are not broken over two lines.
    ".nh",
    ".ad l",
    ".SH NAME",
    "signalbox \\- takes trading signals from desks over HTTPS",
    ".SH SYNOPSIS",
    ".B signalbox",
    ".I command\n[\\fIoptions\\fR]",
    ".SH DESCRIPTION",
    roff(program.description()),
    ".SH COMMANDS",
    ...commands.map(section),
    ".SH EXIT STATUS",
    "0 success, 1 failure, 2 wrong usage.",
    ".SH FILES",
    item("/etc/signalbox/signalbox.env", "settings of the service"),
    item("/var/lib/signalbox", "its data"),
    item("/usr/share/doc/signalbox/docs", "the pages; begin with install.md"),
    "",
  ].join("\n");
}

/** The commands that do something, as the help lists them. */
function leavesOf(command: Command): Command[] {
  const children = command.createHelp().visibleCommands(command);
  const own = children.filter((child) => child.name() !== "help");
  return own.length === 0 ? [command] : own.flatMap(leavesOf);
}

function section(command: Command): string {
  const help = command.createHelp();
  const options = help.visibleOptions(command);
  const items = [
    ...help
      .visibleArguments(command)
      .map((argument) => [help.argumentTerm(argument), help.argumentDescription(argument)]),
    ...options.map((option) => [help.optionTerm(option), help.optionDescription(option)]),
  ];
  return [
    `.SS ${roff(help.commandUsage(command))}`,
    roff(`${command.description().replace(/^\w/, (first) => first.toUpperCase())}.`),
    ...items.map(([term = "", description = ""]) => item(term, description)),
    // Its lines are laid out already.
    ".PP\n.nf",
    roff(belowHelp(command)),
    ".fi",
  ].join("\n");
}

/** Notes and examples, which commander prints below its own help. */
function belowHelp(command: Command): string {
  let text = "";
  command.configureOutput({ writeOut: (part) => void (text += part) }).outputHelp();
  return text.slice(command.helpInformation().length).trim();
}

function item(term: string, description: string): string {
  return `.TP\n.B ${roff(term)}\n${roff(description)}`;
}

/** A line must not begin with a dot or an apostrophe, and a dash that is typed is no hyphen (groff_char(7)). */
function roff(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/^(?=[.'])/gm, "\\&")
    .replaceAll("'", "\\(aq")
    .replaceAll("…", "...");
}
