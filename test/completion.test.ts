/** `signalbox completion`: what the shells ask, and what bash does with it. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { cli, signalbox } from "./_cli.ts";
import { temporaryFolder } from "./_setup.ts";

/** What is offered for a line of words, the last one unfinished. */
async function offersFor(...words: string[]): Promise<string[]> {
  const { code, stdout } = await cli(["complete", "--", ...words]);
  expect(code).toBe(0);
  const lines = stdout.trimEnd().split("\n");
  // Tells the shell not to complete names of files.
  expect(lines.pop()).toBe(":4");
  return lines.map((line) => line.split("\t")[0] ?? "");
}

test.each([
  [["ke"], ["key"]],
  [["key", "re"], ["revoke"]],
  [["key", "revoke", "--js"], ["--json"]],
  [
    ["serve", "--log-level", ""],
    ["debug", "info", "warn", "error", "silent"],
  ],
  [
    ["completion", ""],
    ["bash", "zsh", "fish"],
  ],
  [["nothing", "like", "this"], []],
])("%j is completed by %j", async (words, offers) => {
  expect(await offersFor(...words)).toEqual(offers);
});

test("every command is offered, and no hidden one", async () => {
  const { stdout: help } = await cli(["--help"]);
  const listed = [...(help.split("Commands:")[1] ?? "").matchAll(/^ {2}([a-z]+)/gm)];
  const offers = await offersFor("");
  expect(offers).toEqual(listed.map(([, name = ""]) => name));
  expect(offers).not.toContain("copy");
  expect(offers.length).toBeGreaterThan(10);
});

describe("completion", () => {
  test.each([
    ["bash", "complete -F __signalbox_complete signalbox"],
    ["zsh", "compdef _signalbox signalbox"],
    ["fish", "complete -c signalbox"],
  ])("prints the script of %s", async (shell, says) => {
    const { code, stdout, stderr } = await cli(["completion", shell]);
    expect(stdout).toContain(says);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  test("names the shells that it knows", async () => {
    const { code, stderr } = await cli(["completion", "powershell"]);
    expect(stderr).toContain("Allowed choices are bash, zsh, fish");
    expect(code).toBe(2);
  });

  test("works in bash", async () => {
    const { stdout: script } = await cli(["completion", "bash"]);
    const file = join(temporaryFolder(), "try.sh");
    const line = ["signalbox", "key", "rev"];
    writeFileSync(
      file,
      `signalbox() { ${signalbox.join(" ")} "$@"; }
# Of the package bash-completion, and of an interactive shell.
_get_comp_words_by_ref() { words=(${line.join(" ")}); cword=2; cur=rev; prev=key; }
compopt() { :; }
${script}
__signalbox_complete
echo "\${COMPREPLY[@]}"`,
    );
    const child = Bun.spawn(["bash", "--norc", file], {
      env: { PATH: process.env["PATH"] ?? "" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    expect(await new Response(child.stdout).text()).toBe("revoke\n");
  });
});
