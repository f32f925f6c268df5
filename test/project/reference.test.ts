/** What the pages and OpenAPI documents say of commands, settings, fields and errors. After a change that is wanted, `bun run docs` writes it. */
import { expect, test } from "bun:test";
import type { Command } from "commander";
import { optionOf, type Setting } from "../../src/cli/setting.ts";
import { createProgram } from "../../src/commands/program.ts";
import { settings } from "../../src/commands/serve/settings.ts";
import { completeApi, completeFeed } from "./_openapi.ts";

const commands = leaves(createProgram());

test.each([
  ["src/intake/openapi.yaml", completeApi],
  ["src/feed/openapi.yaml", completeFeed],
  ["docs/configuration.md", withRows("| Flag |", Object.values(settings).map(settingRow))],
  [
    "docs/cli.md",
    (page: string) =>
      withRows(
        "| Command |",
        commands.map(commandRow),
      )(page).replace(
        /(?<=\n## Reference\n)[^]*$/,
        () => `\n${commands.map(reference).join("\n")}`,
      ),
  ],
])("%s is as the program is", async (file, write) => {
  const page = await Bun.file(file).text();
  const written = write(page);
  if (process.env["DOCS"] === "write") await Bun.write(file, written);
  else expect(page).toBe(written);
});

/** Hidden commands are not listed in the help either. */
function leaves(command: Command): Command[] {
  const shown = command.createHelp().visibleCommands(command);
  const children = shown.filter((child) => child.name() !== "help");
  return children.length === 0 ? [command] : children.flatMap(leaves);
}

/** Without the program's own name. */
function nameOf(command: Command): string {
  const { parent } = command;
  return parent?.parent ? `${nameOf(parent)} ${command.name()}` : command.name();
}

/** Replaces the rows of the table with this head. */
function withRows(head: string, rows: readonly string[]) {
  return (page: string): string => {
    const [before = "", rest = ""] = page.split(`\n${head}`);
    const [names = "", line = "", ...old] = rest.split("\n");
    const after = old.slice(old.findIndex((text) => !text.startsWith("|")));
    return [`${before}\n${head}${names}`, line, ...rows, ...after].join("\n");
  };
}

function settingRow(setting: Setting): string {
  const { long, envVar, required, defaultValueDescription: written } = optionOf(setting);
  const fallback =
    written === undefined || written === "none" ? (required ? "none" : "off") : `\`${written}\``;
  const text = setting.text.replaceAll(/--[a-z-]+|\{\}|X-Forwarded-\w+/g, "`$&`");
  return `| \`${long}\` | \`${envVar}\` | ${fallback} | ${text}${setting.more ?? ""} |`;
}

function commandRow(command: Command): string {
  const name = nameOf(command);
  return `| [\`${name}\`](#${name.replaceAll(" ", "-")}) | ${command.description()} |`;
}

function reference(command: Command): string {
  let help = "";
  const writeOut = (text: string): unknown => (help += text);
  command.configureOutput({ writeOut, getOutHelpWidth: () => 100 }).outputHelp();
  return `### ${nameOf(command)}\n\n\`\`\`text\n${help.trimEnd()}\n\`\`\`\n`;
}
