/** Data folders and files that are missing, are something else, or belong to another user. */
import { expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readdirSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { copyDatabase } from "../../src/store/sqlite/copies/copy.ts";
import { cliHere, expectRefusal } from "../kit/cli.ts";
import { seed } from "../store/_databases.ts";
import { temporaryFolder } from "../kit/setup.ts";

/** On a free port: another program may have the default one. */
const SERVE = ["serve", "--listen", "127.0.0.1:0"];
const ID = "01K5QZ8F3V9X2M7T4B6N1C0D8E";

/** All commands except those that can create a database: `serve`, `desk create` and `restore`. */
const needsDatabase = [
  "key list",
  "key mint --desk alpha",
  `key revoke ${ID}`,
  `key rotate ${ID}`,
  "desk list",
  "member list alpha",
  "member invite alpha ada@example.com",
  "member reset alpha ada@example.com",
  "member remove alpha ada@example.com",
  "desk limit alpha --keys 3",
  "desk require-passkeys alpha",
  "signals list",
  `signals show ${ID}`,
  "signals tail --follow",
  "signals export --output copy.csv",
  "audit",
  "status",
  "doctor",
  "verify",
  "backup copy.db",
  "healthcheck",
].map((command) => command.split(" "));

test("a command that needs a database names the folder without one, and leaves it as it is", async () => {
  const cwd = temporaryFolder();
  for (const args of needsDatabase) await expectRefusal(args, join(cwd, "data"), { cwd });
  expect(readdirSync(cwd)).toEqual([]);
  const folder = join(cwd, "mine");
  mkdirSync(folder, { mode: 0o755 });
  for (const args of needsDatabase) {
    await expectRefusal([...args, "--data", "mine"], folder, { cwd });
  }
  expect(readdirSync(folder)).toEqual([]);
  expect(statSync(folder).mode & 0o777).toBe(0o755);
});

test("a refused desk's name leaves no data folder behind", async () => {
  const cwd = temporaryFolder();
  const result = await cliHere(["desk", "create", "No Name", "--data", "new"], { cwd });
  expect(result).toMatchObject({ code: 2, stdout: "" });
  expect(result.stderr).toContain("cannot be a desk's name");
  expect(readdirSync(cwd)).toEqual([]);
});

test("a data folder that is a file, or is in one, is refused", async () => {
  const cwd = temporaryFolder();
  writeFileSync(join(cwd, "file"), "");
  const says = `${join(cwd, "file")} is a file, not a folder: name the folder`;
  for (const args of [...needsDatabase, ["desk", "create", "alpha"], SERVE]) {
    await expectRefusal([...args, "--data", "file"], says, { cwd });
  }
  await expectRefusal(["desk", "list", "--data", "file/below"], says, { cwd });
  copyDatabase((await seed({ signals: 1 })).path, join(cwd, "backup.db"));
  await expectRefusal(["restore", "backup.db", "--data", "file"], says, { cwd });
});

test("verify and restore name a file that does not exist", async () => {
  const cwd = temporaryFolder();
  for (const command of ["verify", "restore"]) {
    await expectRefusal([command, "nope.db"], "There is no file nope.db", { cwd });
  }
  expect(readdirSync(cwd)).toEqual([]);
});

test("hints repeat --data, quoted for the shell, unless it is the default", async () => {
  const cwd = temporaryFolder();
  const hintOf = async (command: string, ...more: string[]) => {
    const { stderr } = await cliHere([...command.split(" "), ...more], { cwd });
    return /(?:with|then type): (.*)\n/.exec(stderr)?.[1];
  };
  expect(await hintOf("desk create alpha")).toBe("signalbox key mint --desk alpha");
  for (const [command, hint] of [
    ["desk create alpha", "key mint --desk alpha"],
    ["key list", "key mint --desk NAME"],
    ["key list --desk alpha", "key mint --desk alpha"],
    [`key revoke ${ID}`, "key list"],
    ["healthcheck", "serve"],
    ["member list alpha", "member invite alpha alice@example.com"],
    ["backup copy.db", `restore ${join(cwd, "copy.db")} --force`],
  ] as const) {
    expect(await hintOf(command, "--data", "my data")).toBe(`signalbox ${hint} --data 'my data'`);
  }
});

const isRoot = process.geteuid?.() === 0;
/** An id that no account has, so that root gets a number to type. */
const NOBODY = 54_321;

test("a data folder of another user is refused, and nothing is created in it", async () => {
  // Only root can give a folder away; for everybody else, this one belongs to root.
  const folder = isRoot ? temporaryFolder() : "/usr";
  if (isRoot) chmodSync(folder, 0o777);
  if (isRoot) chownSync(folder, NOBODY, NOBODY);
  // Only to read, as root could.
  if (isRoot) cpSync((await seed({ signals: 1 })).path, join(folder, "signalbox.db"));
  // Would be refused in a folder of one's own.
  if (isRoot) writeFileSync(join(folder, "acme"), "");
  const before = readdirSync(folder);
  const [owner, typed] = isRoot ? [`user ${NOBODY}`, `'#${NOBODY}'`] : ["root", "root"];
  const commands = ["key list", "desk create alpha", "verify", "backup /tmp/none.db"];
  const check = [...SERVE, "--check", "--acme-domain=a.test", "--acme-http-listen=127.0.0.1:0"];
  for (const command of [SERVE, check, ...commands.map((line) => line.split(" "))]) {
    const { code, stderr } = await cliHere([...command, "--data", folder]);
    expect(code).toBe(1);
    expect(stderr).toContain(`The data folder ${folder} belongs to ${owner}, and you are `);
    expect(stderr).toContain(`sudo -u ${typed} `);
    expect(stderr).not.toContain("chown");
  }
  expect(readdirSync(folder)).toEqual(before);
});
