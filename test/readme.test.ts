/** The README's tables against the program. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Command } from "commander";
import { createProgram } from "../src/cli.ts";
import { errorCatalogue } from "../src/domain/errors.ts";
import { query, startTestApp, temporaryFolder } from "./_setup.ts";

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

test("every error code has a row, with its status", () => {
  for (const [code, { status }] of Object.entries(errorCatalogue)) {
    expect(readme).toContain(`${status} \`${code}\``);
  }
});

const examples = [
  { language: "sh", file: "example.sh", command: "sh" },
  { language: "ts", file: "example.ts", command: process.execPath },
];

test.each(examples)(
  "the example in $language stores its signal",
  async ({ language, file, command }) => {
    const { url, key, dataDir } = await startTestApp();
    const blocks = [...readme.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs"))];
    const example = blocks
      .map(([, text = ""]) => text)
      .find((text) => text.includes("/v1/signals"));
    const path = join(temporaryFolder(), file);
    await Bun.write(path, String(example).replace("https://signals.example.com", url));
    const child = Bun.spawn([command, path], {
      env: { ...process.env, SIGNALBOX_KEY: key },
      stdout: "pipe",
      stderr: "inherit",
    });
    expect(await new Response(child.stdout).text()).toContain("deduped");
    expect(await child.exited).toBe(0);
    const [row] = query<{ client_signal_id: string }>(
      dataDir,
      "SELECT client_signal_id FROM signals",
    );
    expect(row?.client_signal_id).toHaveLength(36);
  },
);
