/** The README's tables against the program. */
import { expect, test } from "bun:test";
import type { Command } from "commander";
import { createProgram } from "../src/cli.ts";
import { errorCatalogue } from "../src/domain/errors.ts";

const readme = await Bun.file("README.md").text();

/** Hidden commands are not listed in the help either. */
function leaves(command: Command): Command[] {
  const shown = command.createHelp().visibleCommands(command);
  const children = shown.filter((child) => child.name() !== "help");
  return children.length === 0 ? [command] : children.flatMap(leaves);
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

const commands = leaves(createProgram());

test("every command has a row, with each of its flags", () => {
  expect(commands.length).toBeGreaterThan(8);
  for (const command of commands) {
    const name = nameOf(command);
    const row = readme.split("\n").find((line) => line.startsWith(`| \`${name}`));
    expect(row, name).toBeDefined();
    if (name === "signalbox serve") continue;
    // --data is explained once, below the table.
    const flags = command.options.map(({ long }) => long).filter((flag) => flag !== "--data");
    for (const flag of flags) expect(row, name).toContain(String(flag));
  }
});

test("every flag of serve has a row, with its name in the environment", () => {
  const serve = commands.find((command) => command.name() === "serve");
  const options = serve?.options ?? [];
  expect(options.length).toBeGreaterThan(10);
  for (const { long, envVar } of options) {
    const row = readme
      .split("\n")
      .find(
        (line) =>
          (line.startsWith("|") && line.includes(`\`${long} `)) || line.includes(`\`${long}\``),
      );
    expect(row, String(long)).toBeDefined();
    expect(row, String(long)).toContain(String(envVar));
  }
});

test.each([
  ["send.sh", "sh"],
  ["send.py", "python"],
  ["send.ts", "ts"],
])("shows examples/%s", async (name, language) => {
  const text = await Bun.file(`examples/${name}`).text();
  expect(readme).toContain(`\n\`\`\`${language}\n${text}\`\`\`\n`);
  expect(text.split("\n").length).toBeLessThan(55);
});

test("every error code has a row, with its status", () => {
  for (const [code, { status }] of Object.entries(errorCatalogue)) {
    expect(readme).toContain(`${status} \`${code}\``);
  }
});
