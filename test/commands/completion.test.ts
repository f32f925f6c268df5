/** `signalbox completion`: what the shells ask, and what bash does with it. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cli, commandsOn, mintKey, signalbox } from "../kit/cli.ts";
import { temporaryFolder } from "../kit/setup.ts";

/** What is offered for a line of words, the last one unfinished. */
async function offersFor(...words: string[]): Promise<string[]> {
  const { code, stdout } = await cli(["complete", "--", ...words]);
  expect(code).toBe(0);
  const lines = stdout.trimEnd().split("\n");
  // Tells the shell not to complete names of files.
  expect(lines.pop()).toBe(":4");
  return lines.map((line) => line.split("\t")[0] ?? "");
}

/** What bash would offer for the end of a line, whose last word is `word` to bash. */
async function bashOffers(line: string, word: string, folder: string): Promise<string[]> {
  const { stdout: script } = await cli(["completion", "bash"]);
  writeFileSync(
    join(folder, "signalbox"),
    `#!/bin/sh\nexec ${signalbox.map((part) => `'${part}'`).join(" ")} "$@"\n`,
    { mode: 0o755 },
  );
  // Twice, as a shell does that reads its start file again.
  const source = `${script}\n${script}\n_signalbox signalbox "$WORD"; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const child = Bun.spawn(["bash", "--norc", "-c", source], {
    cwd: folder,
    env: {
      PATH: `${folder}:${process.env["PATH"] ?? ""}`,
      COMP_LINE: line,
      COMP_POINT: String(line.length),
      WORD: word,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  expect(await new Response(child.stderr).text()).toBe("");
  const offers = await new Response(child.stdout).text();
  return offers.split("\n").filter((offer) => offer !== "");
}

test("every command is offered, and no hidden one", async () => {
  const { stdout: help } = await cli(["--help"]);
  const listed = [...(help.split("Commands:")[1] ?? "").matchAll(/^ {2}([a-z]+)/gm)];
  const offers = await offersFor("");
  expect(offers).toEqual(listed.map(([, name = ""]) => name));
  expect(offers).not.toContain("copy-file");
  expect(offers.length).toBeGreaterThan(10);
});

describe("names", () => {
  test("of desks and active keys are offered, in every shell's list", async () => {
    const dataDir = temporaryFolder();
    const { run, json } = commandsOn(dataDir);
    for (const desk of ["alpha", "beta"]) await run("desk", "create", desk);
    const mint = (label: string) =>
      json<{ id: string }>("key", "mint", "--desk", "alpha", "--label", label);
    const [one, two, spaced] = [await mint("bot"), await mint("bot"), await mint("bot 7")];
    await mint("only");
    await run("key", "revoke", (await mint("ended")).id);
    const keys = [one.id, two.id, spaced.id, "only"];
    const where = `--data ${dataDir}`;
    for (const [line, offers] of [
      [`desk archive ${where} `, ["alpha", "beta"]],
      [`desk archive ${where} al`, ["alpha"]],
      [`desk create ${where} `, []],
      [`desk rename ${where} `, ["alpha", "beta"]],
      [`member invite ${where} `, ["alpha", "beta"]],
      [`key mint ${where} --desk `, ["alpha", "beta"]],
      [`signals list --data=${dataDir} --key `, keys],
      [`key revoke ${where} `, keys],
      [`key rotate ${where} on`, ["only"]],
    ] as const) {
      expect([line, await offersFor(...line.split(" "))]).toEqual([line, [...offers]]);
    }
    const before = readdirSync(dataDir);
    const env = { SIGNALBOX_DATA: dataDir };
    expect(
      (await cli(["complete", "--", "key", "list", "--desk", ""], { env })).stdout,
    ).toStartWith("alpha");
    expect(readdirSync(dataDir)).toEqual(before);
  });

  test("are silently missing without a folder, or with one that is not ours", async () => {
    const folder = temporaryFolder();
    const missing = join(folder, "missing");
    const other = join(folder, "signalbox.db");
    writeFileSync(other, "something else");
    for (const dataDir of [missing, folder]) {
      const words = ["complete", "--", "key", "revoke", "--data", dataDir, ""];
      expect(await cli(words)).toEqual({ code: 0, stdout: ":4\n", stderr: "" });
    }
    expect(readdirSync(folder)).toEqual(["signalbox.db"]);
    expect(readFileSync(other, "utf8")).toBe("something else");
  });

  test("in bash, follow the flag", async () => {
    const dataDir = temporaryFolder();
    await mintKey(dataDir);
    const line = `signalbox signals list --data ${dataDir} --desk `;
    expect(await bashOffers(line, "", temporaryFolder())).toEqual(["alpha"]);
  });
});

describe("completion", () => {
  test.each([
    ["bash", "complete -o default -F _signalbox signalbox"],
    ["zsh", "compdef _signalbox signalbox"],
    ["fish", "complete -c signalbox"],
  ])("prints the script of %s", async (shell, says) => {
    const { code, stdout, stderr } = await cli(["completion", shell]);
    expect(stdout).toContain(says);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  test.each([
    ["signalbox key rev", "rev", ["revoke"]],
    ["signalbox key mint --lab", "--lab", ["--label"]],
    ["signalbox completion ", "", ["bash", "zsh", "fish"]],
    ["signalbox serve --log-level ", "", ["debug", "info", "warn", "error", "silent"]],
    ["signalbox serve --data /srv/a:b --log-l", "--log-l", ["--log-level"]],
    ["signalbox desk list nothing", "nothing", []],
  ])("in bash, %j", async (line, word, offers) => {
    expect(await bashOffers(line, word, temporaryFolder())).toEqual(offers);
  });

  test.each([
    ["signalbox key mint --desk alpha > key.txt --lab", "--lab"],
    ["signalbox key mint --desk $(echo > key.txt) --lab", "--lab"],
    ["signalbox key mint --desk `echo > key.txt`; echo > key.txt --lab", "--lab"],
  ])("in bash, runs nothing of the line %j", async (line, word) => {
    const folder = temporaryFolder();
    const key = join(folder, "key.txt");
    writeFileSync(key, "the only copy");
    await bashOffers(line, word, folder);
    expect(readFileSync(key, "utf8")).toBe("the only copy");
    expect(readdirSync(folder).toSorted()).toEqual(["key.txt", "signalbox"]);
  });
});
