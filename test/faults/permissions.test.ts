/** What the executable says to a user who may not use a folder or file, and on a disk that is full. */
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cli, mintKey, startServe } from "../_cli.ts";
import { buildExecutable } from "../_executable.ts";
import { requirePrograms } from "../_programs.ts";
import { temporaryFolder } from "../_setup.ts";
import { mountMemory } from "./_disk.ts";

setDefaultTimeout(120_000);
requirePrograms("faults");

const NOBODY = 65_534;
let executable = "";
/** Runs the executable as a user without any rights. */
let asNobody: readonly string[] = [];

beforeAll(async () => {
  executable = await buildExecutable();
  const rights = `--reuid=${NOBODY} --regid=${NOBODY} --clear-groups --bounding-set=-all`;
  asNobody = ["setpriv", ...rights.split(" "), "--", executable];
});

/** A folder that everybody may read and nobody owns. */
function nobodysFolder(): string {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const own = join(folder, "own");
  mkdirSync(own, { mode: 0o700 });
  chownSync(own, NOBODY, NOBODY);
  return own;
}

const SERVE = ["serve", "--listen", "127.0.0.1:0"];

/** One sentence, code 1, and nothing that has to do with the source. */
async function expectRefusal(
  program: readonly string[],
  args: readonly string[],
  says: RegExp,
): Promise<void> {
  const { code, stdout, stderr } = await cli(args, { program, cwd: "/" });
  expect({ args, code, stdout, stderr }).toEqual({
    args,
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^signalbox: [^\n]+\n$/),
  });
  expect(stderr).toMatch(says);
}

test("another user's folder: every command names the owner or the right that is missing", async () => {
  const outside = temporaryFolder();
  chmodSync(outside, 0o755);
  const dataDir = join(outside, "data");
  await startServe([], { dataDir, program: [executable] });
  await mintKey(dataDir, "alpha", { program: [executable] });
  const where = ["--data", dataDir];
  for (const args of [["key", "list"], ["desk", "create", "beta"], ["audit"], SERVE]) {
    await expectRefusal(asNobody, [...args, ...where], /belongs to root.*sudo -u root/);
  }
  const copy = join(nobodysFolder(), "copy.db");
  for (const args of [["verify"], ["backup", copy]]) {
    await expectRefusal(asNobody, [...args, ...where], /signalbox\.db cannot be used \(EACCES\)/);
  }
  await expectRefusal(
    asNobody,
    ["healthcheck", ...where],
    /may not ask the server of \S+ \(EACCES\): run signalbox as the user who runs the server/,
  );
  const database = join(dataDir, "signalbox.db");
  for (const command of ["verify", "restore"]) {
    await expectRefusal(asNobody, [command, database], /EACCES.*as the user who owns this file/);
  }
});

test("a folder without write permission: nothing is begun in it", async () => {
  const dataDir = nobodysFolder();
  chmodSync(dataDir, 0o500);
  for (const args of [["desk", "create", "alpha"], SERVE]) {
    await expectRefusal(
      asNobody,
      [...args, "--data", dataDir],
      /is yours and cannot be used with mode 0500: allow it with: chmod 700 \S+, or name another/,
    );
  }
  chmodSync(dataDir, 0o000);
  for (const args of [
    ["key", "list"],
    ["desk", "create", "alpha"],
    ["verify"],
    ["healthcheck"],
    SERVE,
  ]) {
    await expectRefusal(asNobody, [...args, "--data", dataDir], /mode 0000.* chmod 700 /);
  }
  // The default, ./data, in a folder that belongs to another user.
  await expectRefusal(asNobody, SERVE, /\/data cannot be used \(EACCES\).*--data DIR/);
});

test("a port below 1024: the message says how a service gets it", async () => {
  await expectRefusal(
    asNobody,
    ["serve", "--listen", "127.0.0.1:80", "--data", join(nobodysFolder(), "data")],
    /may not listen on 127\.0\.0\.1:80: name a port above 1023.*deploy\/signalbox\.service/,
  );
});

test("a file that may not be read or written is named with the right that is missing", async () => {
  const dataDir = nobodysFolder();
  await mintKey(dataDir, "alpha", { program: asNobody });
  const database = join(dataDir, "signalbox.db");
  chmodSync(database, 0o000);
  for (const args of [["key", "list"], ["verify"], ["backup", join(dataDir, "../x.db")], SERVE]) {
    await expectRefusal(asNobody, [...args, "--data", dataDir], /cannot be used|cannot be written/);
  }
  chmodSync(database, 0o400);
  await expectRefusal(
    asNobody,
    ["key", "mint", "--desk", "alpha", "--data", dataDir],
    /SQLITE_READONLY.*as the user who owns the data folder/,
  );
  chmodSync(database, 0o600);
  await expectRefusal(
    asNobody,
    ["backup", "/etc/copy.db", "--data", dataDir],
    /\/etc\/copy\.db cannot/,
  );
});

test("a full disk is called full, by every command that needs room", async () => {
  const disk = mountMemory(2);
  const dataDir = join(disk, "data");
  const program = [executable];
  await mintKey(dataDir, "alpha", { program });
  expect(() => writeFileSync(join(disk, "fill"), Buffer.alloc(4 * 1024 * 1024))).toThrow("ENOSPC");
  for (const args of [["key", "mint", "--desk", "alpha"], ["desk", "create", "beta"], SERVE]) {
    await expectRefusal(program, [...args, "--data", dataDir], /The disk of \S+ is full/);
  }
  await expectRefusal(
    program,
    ["backup", join(disk, "copy.db"), "--data", dataDir],
    /MiB are free on the disk.*Free some space/,
  );
});
