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
import { fillDisk, makeReadOnly, mountMemory } from "../kit/disk.ts";
import { stop } from "../kit/faults.ts";
import { asNobody, NOBODY, nobodysFolder } from "../kit/nobody.ts";

/** An id that no account has, so that root gets a number to type. */
const STRANGER = 54_321;
const SERVE = "serve --listen 127.0.0.1:0";
let executable = "";
/** Runs the executable without any privileges. */
let unprivileged: readonly string[] = [];

beforeAll(async () => {
  executable = await buildExecutable();
  unprivileged = asNobody("--bounding-set=-all --no-new-privs", executable);
});

/** Each command is refused with this sentence. The working folder belongs to root. */
async function expectRefused(
  commands: readonly string[],
  says: RegExp,
  program: readonly string[] = unprivileged,
): Promise<void> {
  for (const command of commands)
    await expectRefusal(command.split(" "), says, { program, cwd: "/" });
}

/** Commands on a data folder. */
const on = (dataDir: string, ...commands: string[]): string[] =>
  commands.map((command) => `${command} --data ${dataDir}`);

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
  await expectRefused(
    [["serve", ...args].join(" ")],
    /is a private key that other users can access \(mode 0644\)\. Run: chmod 640 /,
  );
});

test("another user's folder: every command names the owner or the missing permission", async () => {
  const outside = temporaryFolder();
  chmodSync(outside, 0o755);
  const dataDir = join(outside, "data");
  await startServe([], { dataDir, program: [executable] });
  await mintKey(dataDir, "alpha", { program: [executable] });
  const copy = join(nobodysFolder(), "copy.db");
  const check = `${SERVE} --check --acme-domain=a.test --acme-http-listen=127.0.0.1:0`;
  const commands = ["key list", "desk create beta", "audit", "verify", `backup ${copy}`];
  await expectRefused(on(dataDir, ...commands, SERVE, check), /belongs to root.*sudo -u root/);
  await expectRefused(
    on(dataDir, "healthcheck"),
    /may not ask the server of \S+ \(EACCES\): run signalbox as the user who runs the server/,
  );
  const database = join(dataDir, "signalbox.db");
  await expectRefused(
    [`verify ${database}`, `restore ${database}`],
    /EACCES.*as the user who owns this file/,
  );
});

test("a folder without write permission is refused, with the command that allows it", async () => {
  const dataDir = nobodysFolder();
  chmodSync(dataDir, 0o500);
  await expectRefused(
    on(dataDir, "desk create alpha", SERVE),
    /cannot be used: its mode is 0500\. Run: chmod 700 \S+, or name another/,
  );
  chmodSync(dataDir, 0o000);
  await expectRefused(
    on(dataDir, "key list", "desk create alpha", "verify", "healthcheck", SERVE),
    /mode is 0000. Run: chmod 700 /,
  );
  // The default, ./data, in a folder that belongs to another user.
  await expectRefused([SERVE], /\/data cannot be used \(EACCES\).*--data DIR/);
});

test("a port below 1024: the message says how a service gets it", async () => {
  await expectRefused(
    on(join(nobodysFolder(), "data"), "serve --listen 127.0.0.1:80"),
    /is not allowed to listen on 127\.0\.0\.1:80: name a port above 1023.*deploy\/signalbox\.service/,
  );
});

test("a file that may not be read or written is named with the missing permission", async () => {
  const dataDir = nobodysFolder();
  await mintKey(dataDir, "alpha", { program: unprivileged });
  const database = join(dataDir, "signalbox.db");
  chmodSync(database, 0o000);
  await expectRefused(
    on(dataDir, "key list", "verify", `backup ${join(nobodysFolder(), "x.db")}`, SERVE),
    /its mode is 0000\. Run: chmod 600 /,
  );
  chmodSync(database, 0o400);
  const mint = "key mint --desk alpha";
  await expectRefused(on(dataDir, mint), /its mode is 0400\. Run: chmod 600 /);
  chmodSync(database, 0o600);
  await expectRefused(on(dataDir, "backup /etc/copy.db"), /\/etc\/copy\.db cannot/);
});

test("every command that needs room says that the disk is full", async () => {
  const disk = mountMemory(2);
  const dataDir = join(disk, "data");
  const program = [executable];
  await mintKey(dataDir, "alpha", { program });
  fillDisk(disk);
  const commands = ["key mint --desk alpha", "desk create beta", SERVE];
  await expectRefused(on(dataDir, ...commands), /The disk of \S+ is full/, program);
  const backup = on(dataDir, `backup ${join(disk, "copy.db")}`);
  await expectRefused(backup, /has 0 MiB left.*Free some space/, program);
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
  const { dataDir } = server;
  const { stdout } = await cli(["status", "--data", dataDir], { program });
  expect(stdout).toMatch(/The last backup failed at \S+ \S+: The folder/);
  const check = ["serve --check --listen 127.0.0.1:0", ...args].join(" ");
  await expectRefused([check], /EROFS\): name one/, program);
  const backup = on(dataDir, `backup ${join(folder, "now.db")}`);
  await expectRefused(backup, /now\.db cannot be written \(EROFS\)/, program);
});

test.each(["signalbox.db", "signalbox.db-wal", "signalbox-sessions.db", "serve.lock"])(
  "a file %s of another user is refused, with the command that changes it",
  async (name) => {
    const dataDir = temporaryFolder();
    const file = join(dataDir, name);
    writeFileSync(file, "");
    chmodSync(file, 0o666);
    chownSync(file, STRANGER, STRANGER);
    for (const command of on(dataDir, `${SERVE} --check`, SERVE, "desk create alpha")) {
      await expectRefusal(
        command.split(" "),
        `${file} belongs to user ${STRANGER}, and you are root. Run: sudo chown -h 0 ${file}, or name another folder`,
      );
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
