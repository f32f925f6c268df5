/** The executable as a service runs it: an unprivileged user, with files and ports it may not use. */
import { beforeAll, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  cpSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { makeCertificate, presentedName, writeCertificate } from "../../kit/certificates.ts";
import { cli, expectRefusal, mintKey, startServe } from "../../kit/cli.ts";
import { seed } from "../../store/_databases.ts";
import { buildExecutable } from "../../kit/executable.ts";
import { post, query, signal, temporaryFolder } from "../../kit/setup.ts";
import { makeReadOnly, mountMemory } from "../kit/disk.ts";
import { stop } from "../kit/faults.ts";
import { asNobody, NOBODY, nobodysFolder } from "../kit/nobody.ts";

/** An id that no account has, so that root gets a number to type. */
const STRANGER = 54_321;
const SERVE = ["serve", "--listen", "127.0.0.1:0"];
let executable = "";
/** Runs the executable without any privileges. */
let unprivileged: readonly string[] = [];

beforeAll(async () => {
  executable = await buildExecutable();
  unprivileged = asNobody("--bounding-set=-all --no-new-privs", executable);
});

/** The working folder belongs to root. */
function expectFrom(program: readonly string[], args: readonly string[], says: RegExp) {
  return expectRefusal(args, says, { program, cwd: "/" });
}

test("without privileges it serves, takes commands and stops, and all its files are its own", async () => {
  const cwd = nobodysFolder();
  const dataDir = join(cwd, "data");
  const options = { program: unprivileged, cwd, dataDir };
  const server = await startServe([], options);
  const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
  expect(status).toContain(`\nUid:${`\t${NOBODY}`.repeat(4)}\n`);
  expect(status).toContain("\nCapEff:\t0000000000000000\n");
  const { key } = await mintKey(dataDir, "alpha", options);
  expect((await post(server.url, key)).status).toBe(201);
  expect((await cli(["healthcheck", "--data", dataDir], options)).code).toBe(0);
  const backup = join(cwd, "backup.db");
  expect((await cli(["backup", backup, "--data", dataDir], options)).code).toBe(0);
  await stop(server);
  expect(query(dataDir, "SELECT symbol FROM signals")).toEqual([{ symbol: signal.symbol }]);
  for (const path of [backup, join(dataDir, "signalbox.db")]) {
    expect(statSync(path).uid).toBe(NOBODY);
  }
});

test("without privileges it takes over a new certificate", async () => {
  const cwd = nobodysFolder();
  const files = writeCertificate(cwd, await makeCertificate("first"));
  for (const file of Object.values(files)) chownSync(file, NOBODY, NOBODY);
  const args = ["--tls-cert", files.certFile, "--tls-key", files.keyFile];
  const server = await startServe(args, { program: unprivileged, cwd, dataDir: join(cwd, "data") });
  expect(await presentedName(server.url)).toBe("first");
  writeCertificate(cwd, await makeCertificate("second"));
  server.kill("SIGHUP");
  await server.logged("new certificate in use");
  for (let count = 0; count < 10; count += 1) {
    expect(await presentedName(server.url)).toBe("second");
  }
});

test("a private key that root shares with the service's group is accepted, one that all may read is not", async () => {
  const cwd = nobodysFolder();
  const certificate = await makeCertificate("handed");
  const { certFile, keyFile } = writeCertificate(join(cwd, ".."), certificate);
  chownSync(keyFile, 0, NOBODY);
  chmodSync(keyFile, 0o640);
  const args = ["--tls-cert", certFile, "--tls-key", keyFile];
  const server = await startServe(args, { program: unprivileged, cwd, dataDir: join(cwd, "data") });
  expect(await presentedName(server.url)).toBe("handed");
  chmodSync(keyFile, 0o644);
  await expectFrom(
    unprivileged,
    ["serve", ...args],
    /is a private key that other users can access \(mode 0644\)\. Run: chmod 640 /,
  );
});

test("another user's folder: every command names the owner or the missing permission", async () => {
  const outside = temporaryFolder();
  chmodSync(outside, 0o755);
  const dataDir = join(outside, "data");
  await startServe([], { dataDir, program: [executable] });
  await mintKey(dataDir, "alpha", { program: [executable] });
  const where = ["--data", dataDir];
  const copy = join(nobodysFolder(), "copy.db");
  const commands = [["key", "list"], ["desk", "create", "beta"], ["audit"], ["verify"]];
  const check = [...SERVE, "--check", "--acme-domain=a.test", "--acme-http-listen=127.0.0.1:0"];
  for (const args of [...commands, ["backup", copy], SERVE, check]) {
    await expectFrom(unprivileged, [...args, ...where], /belongs to root.*sudo -u root/);
  }
  await expectFrom(
    unprivileged,
    ["healthcheck", ...where],
    /may not ask the server of \S+ \(EACCES\): run signalbox as the user who runs the server/,
  );
  const database = join(dataDir, "signalbox.db");
  for (const command of ["verify", "restore"]) {
    await expectFrom(unprivileged, [command, database], /EACCES.*as the user who owns this file/);
  }
});

test("a folder without write permission is refused, with the command that allows it", async () => {
  const dataDir = nobodysFolder();
  chmodSync(dataDir, 0o500);
  for (const args of [["desk", "create", "alpha"], SERVE]) {
    await expectFrom(
      unprivileged,
      [...args, "--data", dataDir],
      /cannot be used: its mode is 0500\. Run: chmod 700 \S+, or name another/,
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
    await expectFrom(unprivileged, [...args, "--data", dataDir], /mode is 0000. Run: chmod 700 /);
  }
  // The default, ./data, in a folder that belongs to another user.
  await expectFrom(unprivileged, SERVE, /\/data cannot be used \(EACCES\).*--data DIR/);
});

test("a port below 1024: the message says how a service gets it", async () => {
  await expectFrom(
    unprivileged,
    ["serve", "--listen", "127.0.0.1:80", "--data", join(nobodysFolder(), "data")],
    /is not allowed to listen on 127\.0\.0\.1:80: name a port above 1023.*deploy\/signalbox\.service/,
  );
});

test("a file that may not be read or written is named with the missing permission", async () => {
  const dataDir = nobodysFolder();
  await mintKey(dataDir, "alpha", { program: unprivileged });
  const database = join(dataDir, "signalbox.db");
  chmodSync(database, 0o000);
  for (const args of [
    ["key", "list"],
    ["verify"],
    ["backup", join(nobodysFolder(), "x.db")],
    SERVE,
  ]) {
    await expectFrom(
      unprivileged,
      [...args, "--data", dataDir],
      /its mode is 0000\. Run: chmod 600 /,
    );
  }
  chmodSync(database, 0o400);
  await expectFrom(
    unprivileged,
    ["key", "mint", "--desk", "alpha", "--data", dataDir],
    /its mode is 0400\. Run: chmod 600 /,
  );
  chmodSync(database, 0o600);
  await expectFrom(
    unprivileged,
    ["backup", "/etc/copy.db", "--data", dataDir],
    /\/etc\/copy\.db cannot/,
  );
});

test("every command that needs room says that the disk is full", async () => {
  const disk = mountMemory(2);
  const dataDir = join(disk, "data");
  const program = [executable];
  await mintKey(dataDir, "alpha", { program });
  expect(() => writeFileSync(join(disk, "fill"), Buffer.alloc(4 * 1024 * 1024))).toThrow("ENOSPC");
  for (const args of [["key", "mint", "--desk", "alpha"], ["desk", "create", "beta"], SERVE]) {
    await expectFrom(program, [...args, "--data", dataDir], /The disk of \S+ is full/);
  }
  await expectFrom(
    program,
    ["backup", join(disk, "copy.db"), "--data", dataDir],
    /has 0 MiB left.*Free some space/,
  );
});

test("backups on a disk that has become read-only fail with a sentence that names the folder", async () => {
  const disk = mountMemory(8);
  const program = [executable];
  const folder = join(disk, "backups");
  const args = ["--backup-dir", folder, "--backup-every", "1s"];
  const server = await startServe(args, { program });
  await server.logged("backup made");
  makeReadOnly(disk);
  const sentence = `The folder ${folder} cannot be used for backups (EROFS): name one that this user may write to.`;
  await server.logged(sentence);
  const data = ["--data", server.dataDir];
  const { stdout } = await cli(["status", ...data], { program });
  expect(stdout).toMatch(/The last backup failed at \S+ \S+: The folder/);
  await expectFrom(
    program,
    ["serve", "--check", ...args, "--listen=127.0.0.1:0"],
    /EROFS\): name one/,
  );
  const file = join(folder, "now.db");
  await expectFrom(program, ["backup", file, ...data], /now\.db cannot be written \(EROFS\)/);
});

test.each(["signalbox.db", "signalbox.db-wal", "signalbox-sessions.db", "serve.lock"])(
  "a file %s of another user is refused, with the command that changes it",
  async (name) => {
    const dataDir = temporaryFolder();
    const file = join(dataDir, name);
    writeFileSync(file, "");
    chmodSync(file, 0o666);
    chownSync(file, STRANGER, STRANGER);
    for (const command of [[...SERVE, "--check"], SERVE, ["desk", "create", "alpha"]]) {
      const { code, stderr } = await cli([...command, "--data", dataDir]);
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringContaining(
          `${file} belongs to user ${STRANGER}, and you are root. Run: sudo chown -h 0 ${file}, or name another folder`,
        ),
      });
    }
    expect(readdirSync(dataDir)).toEqual([name]);
    expect(statSync(file)).toMatchObject({ uid: STRANGER, mode: 0o100666 });
  },
);

test("another user's copy of a file is left as it is", async () => {
  const { dataDir, path } = await seed({ signals: 1 });
  cpSync(path, `${path}.bak`);
  chownSync(`${path}.bak`, STRANGER, STRANGER);
  const { code, stderr } = await cli(["desk", "list", "--data", dataDir]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(statSync(`${path}.bak`).uid).toBe(STRANGER);
});
