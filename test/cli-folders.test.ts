/** What the executable makes of folders and files that are missing, or that it may not use. */
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cli, mintKey } from "./_cli.ts";
import { buildExecutable } from "./_executable.ts";
import { temporaryFolder } from "./_setup.ts";

setDefaultTimeout(60_000);

let program: readonly string[] = [];

beforeAll(async () => {
  program = [await buildExecutable()];
});

const ID = "01K5QZ8F3V9X2M7T4B6N1C0D8E";

/** Every command but those that begin a database: `serve`, `desk create` and `restore`. */
const needsDatabase: readonly (readonly string[])[] = [
  ["key", "list"],
  ["key", "mint", "--desk", "alpha"],
  ["key", "revoke", ID],
  ["key", "rotate", ID],
  ["desk", "list"],
  ["desk", "members", "alpha"],
  ["desk", "invite", "alpha", "--email", "ada@example.com"],
  ["desk", "reset", "alpha", "ada@example.com"],
  ["desk", "remove-member", "alpha", "ada@example.com"],
  ["audit"],
  ["verify"],
  ["backup", "copy.db"],
];

async function expectRefusal(args: readonly string[], cwd: string, says: string): Promise<void> {
  const { code, stdout, stderr } = await cli(args, { program, cwd });
  expect({ args, code, stdout, stderr }).toEqual({
    args,
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^signalbox: [^\n]+\n$/),
  });
  expect(stderr).toContain(says);
}

test("a command in the wrong folder names it, and creates nothing", async () => {
  const cwd = temporaryFolder();
  for (const args of needsDatabase) await expectRefusal(args, cwd, join(cwd, "data"));
  await expectRefusal(["healthcheck"], cwd, join(cwd, "data"));
  expect(readdirSync(cwd)).toEqual([]);
});

test("a command leaves a folder without a database as it is", async () => {
  const cwd = temporaryFolder();
  mkdirSync(join(cwd, "mine"), { mode: 0o755 });
  for (const args of needsDatabase) {
    await expectRefusal([...args, "--data", "mine"], cwd, join(cwd, "mine"));
  }
  expect(readdirSync(join(cwd, "mine"))).toEqual([]);
  expect(statSync(join(cwd, "mine")).mode & 0o777).toBe(0o755);
});

test("hints repeat --data, quoted for the shell, if it is not the default", async () => {
  const cwd = temporaryFolder();
  const hintOf = async (args: readonly string[]) => {
    const { stderr } = await cli(args, { program, cwd });
    return /with: (.*)\n/.exec(stderr)?.[1];
  };
  expect(await hintOf(["desk", "create", "alpha"])).toBe("signalbox key mint --desk alpha");
  const other = ["--data", "my data"];
  expect(await hintOf(["desk", "create", "alpha", ...other])).toBe(
    "signalbox key mint --desk alpha --data 'my data'",
  );
  const hints = [
    [["desk", "create", "alpha"], "key mint --desk alpha"],
    [["key", "list"], "key mint --desk NAME"],
    [["key", "revoke", ID], "key list"],
    [["healthcheck"], "serve"],
    [["desk", "members", "alpha"], "desk invite alpha --email alice@example.com"],
    [["backup", "copy.db"], "restore " + join(cwd, "copy.db")],
  ] as const;
  for (const [args, hint] of hints) {
    expect(await hintOf([...args, ...other])).toBe(`signalbox ${hint} --data 'my data'`);
  }
});

test("verify and restore of a file that is not there name the file", async () => {
  const cwd = temporaryFolder();
  for (const command of ["verify", "restore"]) {
    await expectRefusal([command, "nope.db"], cwd, "There is no file nope.db");
  }
  expect(existsSync(join(cwd, "data"))).toBe(false);
});

test("a data folder that is a file is refused in one sentence", async () => {
  const cwd = temporaryFolder();
  writeFileSync(join(cwd, "file"), "");
  for (const args of [...needsDatabase, ["desk", "create", "alpha"], ["serve"], ["healthcheck"]]) {
    await expectRefusal([...args, "--data", "file"], cwd, join(cwd, "file"));
  }
});

test("commands that are not about the database do without one", async () => {
  const cwd = temporaryFolder();
  expect((await cli(["version"], { program, cwd })).code).toBe(0);
  await mintKey(join(cwd, "data"), "alpha", { program, cwd });
  expect((await cli(["key", "list"], { program, cwd })).code).toBe(0);
});
