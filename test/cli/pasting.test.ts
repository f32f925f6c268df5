/** Commands that we print for pasting are quoted, and keep the key out of arguments. */
import { expect, test } from "bun:test";
import { firstSignalCommand, shellQuoted } from "../../src/lib/text/shell.ts";
import { cli } from "../kit/cli.ts";
import { temporaryFolder } from "../kit/setup.ts";

const KEY = `sbk_${"0".repeat(64)}`;

test.each([
  "",
  "a b",
  "it's",
  "$HOME `id` $(id)",
  'a"b',
  "a;b&c|d>e",
  "*",
  "~",
  "\\",
  "line\nbreak",
])("the shell reads %j as it is", async (text) => {
  const shell = Bun.spawn(["sh", "-c", `printf '%s|' ${shellQuoted(text)}`], { stdout: "pipe" });
  expect(await new Response(shell.stdout).text()).toBe(`${text}|`);
});

test("a word that needs no quotes has none", () => {
  for (const word of ["/var/lib/signalbox", "http://127.0.0.1:8080/v1/signals"]) {
    expect(shellQuoted(word)).toBe(word);
  }
});

test("the first signal's command gives curl its key on stdin, never as an argument", async () => {
  const folder = temporaryFolder();
  const url = "https://signals.example.com/it's $(id)";
  // A curl that prints its arguments and its stdin.
  await Bun.write(`${folder}/curl`, `#!/bin/sh\nprintf '<%s>\\n' "$@"\ncat\n`);
  await Bun.spawn(["chmod", "+x", `${folder}/curl`]).exited;
  const shell = Bun.spawn(["sh", "-c", firstSignalCommand(url, KEY, "first")], {
    env: { PATH: `${folder}:${process.env["PATH"]}` },
    stdout: "pipe",
  });
  const [last = "", ...lines] = (await new Response(shell.stdout).text())
    .trimEnd()
    .split("\n")
    .toReversed();
  expect(last).toBe(`Authorization: Bearer ${KEY}`);
  expect(lines).toContain(`<${url}/v1/signals>`);
  expect(lines.join()).toContain('"client_signal_id":"first"');
  expect(lines.join()).not.toContain("sbk_");
});

test("a hint quotes the desk and the address that were typed", async () => {
  const dataDir = `${temporaryFolder()}/it's here`;
  await cli(["desk", "create", "alpha", "--data", dataDir]);
  await cli(["desk", "create", "beta", "--data", dataDir]);
  const email = "o'brien$(id)@example.com";
  await cli(["member", "invite", "beta", email, "--data", dataDir]);
  const taken = await cli(["member", "invite", "alpha", email, "--data", dataDir]);
  expect(taken.stderr).toContain(`member remove beta ${shellQuoted(email)}`);
});
