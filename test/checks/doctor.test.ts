/** `signalbox doctor`: each check fails when its cause is there, and says what to do. */
import { expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { basename, join } from "node:path";
import { ulid } from "ulid";
import { fileSystemOf } from "../../src/checks/disk.ts";
import type { Readiness } from "../../src/checks/table.ts";
import { DAY_MS, HOUR_MS } from "../../src/lib/text/time.ts";
import { timeStamp } from "../../src/backups/folder.ts";
import { askServer } from "../../src/ops/client.ts";
import { makeCertificate, writeCertificate } from "../kit/certificates.ts";
import {
  cliHere,
  type CliOptions,
  expectRefusal,
  freePort,
  mintKey,
  signalbox,
  startServe,
} from "../kit/cli.ts";
import { changePage, dropLastCell, seed } from "../store/_databases.ts";
import { hashSignals } from "../kit/records.ts";
import {
  callUrl,
  onCleanup,
  openForDamage,
  posting,
  signal,
  startTestApp,
  temporaryFolder,
  trusting,
} from "../kit/setup.ts";
import { startOnTerminal } from "../kit/terminal.ts";

interface Finding {
  readonly name: string;
  readonly severity: "ok" | "warning" | "problem";
  readonly sentence: string;
  readonly next: string | null;
}

/** By name. The exit code must agree with them. */
async function doctor(
  dataDir: string,
  args: readonly string[] = [],
  options: CliOptions = {},
): Promise<Record<string, Finding>> {
  const settings = args.includes("--listen") ? args : [...args, "--listen", "127.0.0.1:0"];
  const { code, stdout } = await cliHere(
    ["doctor", "--json", "--data", dataDir, ...settings],
    options,
  );
  const findings = JSON.parse(stdout) as Finding[];
  expect(code).toBe(findings.some(({ severity }) => severity === "problem") ? 1 : 0);
  return Object.fromEntries(findings.map((finding) => [finding.name, finding]));
}

/** What one check says: `warning: the sentence. Next: what to do`. */
async function said(
  name: string,
  dataDir: string,
  args: readonly string[] = [],
  options: CliOptions = {},
): Promise<string> {
  const found = (await doctor(dataDir, args, options))[name];
  return `${found?.severity}: ${found?.sentence} Next: ${found?.next}`;
}

/** Their names. The temporary folder itself may be in memory, or in a container. */
function notOk(findings: Record<string, Finding>): string[] {
  const others = Object.values(findings).filter(({ name }) => name !== "file system");
  return others.filter(({ severity }) => severity !== "ok").map(({ name }) => name);
}

async function newFolder(): Promise<string> {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  return dataDir;
}

function stateOf(folder: string): unknown {
  return readdirSync(folder)
    .toSorted()
    .map((name) => [name, statSync(join(folder, name)).mode, statSync(join(folder, name)).size]);
}

test("beside a sound server every check is ok, and nothing changes", async () => {
  const backups = temporaryFolder();
  const certificate = await makeCertificate("sound", { to: new Date(Date.now() + 90 * DAY_MS) });
  const { certFile, keyFile } = writeCertificate(temporaryFolder(), certificate);
  const tls = ["--tls-cert", certFile, "--tls-key", keyFile];
  const listen = `127.0.0.1:${await freePort()}`;
  const args = [...tls, "--public-url", `https://${listen}`, "--backup-dir", backups];
  const server = await startServe(args, { listen });
  const { key } = await mintKey(server.dataDir);
  const sent = await callUrl(
    server.url,
    "/v1/signals",
    posting(key, { ...signal, signal_time: Date.now() }, trusting),
  );
  expect(sent.status).toBe(201);
  await server.logged("backup made");
  const before = [server.dataDir, backups].map(stateOf);
  const findings = await doctor(server.dataDir, [...args, "--listen", listen]);
  expect(notOk(findings)).toEqual([]);
  expect(findings["clock"]?.sentence).toMatch(/latest 1 signal is \d\.\d s/);
  expect(findings["certificate"]?.sentence).toMatch(/^It expires in (89|90) days/);
  expect(findings["backups"]?.sentence).toMatch(
    /^The newest, of .*Z, was verified when it was made\.$/,
  );
  expect([server.dataDir, backups].map(stateOf)).toEqual(before);
  // The server's certificate and backups, without a flag.
  expect(notOk(await doctor(server.dataDir))).toEqual([]);
});

test("without a server it says so, changes nothing, and prints one line per check", async () => {
  const dataDir = await newFolder();
  const before = stateOf(dataDir);
  const args = ["doctor", "--data", dataDir, "--listen", "127.0.0.1:0"];
  const { stdout } = await cliHere(args);
  const names = Object.keys(await doctor(dataDir));
  expect(stateOf(dataDir)).toEqual(before);
  const lines = stdout.trimEnd().split("\n");
  expect(lines.map((line) => /^(?:ok {2}|warn|fail) {2}(\S+(?: \S+)*)/.exec(line)?.[1])).toEqual(
    names,
  );
  expect(lines[0]).toMatch(
    `warn  server         The server is not running. Next: signalbox serve --data ${dataDir}`,
  );
  expect(stdout).toMatch(
    /^warn {2}backups .* Next: give doctor the flags of serve, .* --backup-dir DIR/m,
  );
  expect(stdout).not.toContain("\x1b");
  chmodSync(join(dataDir, "signalbox.db"), 0o644);
  const failed = await cliHere(args);
  expect(failed.code).toBe(1);
  expect(failed.stderr).toMatch(/checks? failed: do what the lines above say/);
});

test("has colours on a terminal, unless NO_COLOR is set", async () => {
  const args = ["doctor", "--data", await newFolder(), "--listen", "127.0.0.1:0"];
  const shown = async (env: Record<string, string>) =>
    (await startOnTerminal(args, { env, cols: 400 }).ended()).shown;
  expect(await shown({})).toContain("\x1b[33mwarn\x1b[39m  server");
  expect(await shown({ NO_COLOR: "1" })).toStartWith("warn  server");
});

test("permissions: names what other users can access, and the command that ends it", async () => {
  const dataDir = await newFolder();
  const database = join(dataDir, "signalbox.db");
  chmodSync(dataDir, 0o750);
  chmodSync(database, 0o644);
  const command = `chmod u+rwX,go= ${dataDir} ${database}`;
  const says = `problem: ${dataDir} has mode 0750. Next: ${command}`;
  expect(await said("permissions", dataDir)).toBe(says);
  expect(Bun.spawnSync(["sh", "-c", command]).exitCode).toBe(0);
  expect(await said("permissions", dataDir)).toStartWith("ok: ");
});

test.each([
  [
    "ahead",
    60_000,
    /^warning: .* is (59|60)\.\d s ahead of this machine's clock .*median.*timedatectl/,
  ],
  ["a little behind", -20_000, /^ok: .* is 20\.\d s behind/],
  ["far behind", -120_000, /^warning: .* is 2 minutes behind.*timedatectl/],
])("clock: signals whose time is %s (%d ms)", async (_, skewMs, says) => {
  const { dataDir, post } = await startTestApp();
  for (const ms of [skewMs, skewMs, DAY_MS]) {
    expect((await post({ ...signal, signal_time: Date.now() + ms })).status).toBe(201);
  }
  expect((await post(signal)).status).toBe(201);
  expect(await said("clock", dataDir)).toMatch(says);
});

test("clock: signals whose time is in seconds", async () => {
  const { dataDir, post } = await startTestApp();
  for (const time of [Date.now(), Date.now(), Math.floor(Date.now() / 1_000)]) {
    expect((await post({ ...signal, signal_time: time })).status).toBe(201);
  }
  expect(await said("clock", dataDir)).toMatch(
    /^warning: A signal_time of the latest 3 signals seems to be in seconds: \d{10}, sent with key \w{26}\. Next: let the bot send milliseconds$/,
  );
});

test("ids: ahead of the clock since it stepped forward and back, as status says, too", async () => {
  const { dataDir, post } = await startTestApp();
  expect((await post(signal)).status).toBe(201);
  expect(await said("ids", dataDir)).toStartWith("ok: ");
  const ahead = ulid(Date.now() + 3_650 * DAY_MS);
  const db = openForDamage(dataDir);
  db.run("UPDATE signals SET id = ?", [ahead]);
  hashSignals(db);
  const says = "The newest signal's id is 3650 days ahead of this machine's clock";
  const found = await said("ids", dataDir);
  expect(found).toStartWith(`warning: ${says}`);
  expect(found).toContain("timedatectl");
  const { stdout } = await cliHere(["status", "--data", dataDir]);
  expect(stdout).toContain(`! ${says}`);
  expect(stdout).toContain("1 signal in the last minute, 1 in the last hour");
});

test("certificate: too old, of another name, and without its key", async () => {
  const dataDir = await newFolder();
  const folder = temporaryFolder();
  const found = async (days: number, args: readonly string[] = []) => {
    const { certFile, keyFile } = writeCertificate(
      folder,
      await makeCertificate("one", {
        from: new Date(Date.now() - 60 * DAY_MS),
        to: new Date(Date.now() + days * DAY_MS),
      }),
    );
    const tls = ["--tls-cert", certFile, "--tls-key", keyFile];
    return said("certificate", dataDir, [...tls, ...args]);
  };
  expect(await found(3)).toMatch(/^warning: The certificate expires at .* Next: renew it/);
  expect(await found(-3)).toMatch(/^problem: The certificate expired at /);
  const urls = ["--public-url", "https://127.0.0.1", "--console-url", "https://c.example.com"];
  const certFile = join(folder, "cert.pem");
  expect(await found(90, urls)).toMatch(
    `problem: ${certFile} is not valid for c.example.com. Next: get a certificate for every name, or correct --public-url and --console-url`,
  );
  expect(await found(90, [...urls, "--trust-proxy", "10.0.0.1"])).toStartWith("ok: ");
  rmSync(join(folder, "key.pem"));
  const tls = ["--tls-cert", certFile, "--tls-key", join(folder, "key.pem")];
  expect(await said("certificate", dataDir, tls)).toMatch(
    /^problem: .*name a readable PEM file with --tls-key/,
  );
});

test("certificate: one that has expired is a warning of serve and serve --check, in the words of status", async () => {
  const dataDir = await newFolder();
  const [from, to] = [60, 3].map((days) => new Date(Date.now() - days * DAY_MS));
  const certificate = await makeCertificate("one", { from: from as Date, to: to as Date });
  const { certFile, keyFile } = writeCertificate(temporaryFolder(), certificate);
  const tls = ["--tls-cert", certFile, "--tls-key", keyFile];
  const serve = ["serve", "--check", "--listen", "127.0.0.1:0", "--data", dataDir, ...tls];
  const check = await cliHere(serve);
  const server = await startServe(tls, { dataDir });
  await server.logged("and clients cannot connect.");
  const { stdout } = await cliHere(["status", "--data", dataDir]);
  const shown = stdout.match(/! The certificate expired at .*, and clients cannot connect\.\n.*/);
  expect(check.code).toBe(0);
  expect(check.stderr).toContain(shown?.[0] ?? "nothing of it in status");
});

test("descriptors: the limit of the running server, or else of this command", async () => {
  const limited = {
    program: ["sh", "-c", 'ulimit -n 512; exec "$0" "$@"', ...signalbox],
  };
  const few =
    /^warning: 512 are allowed, enough for 384 connections of 4,096 \(--max-connections\)\. Next: .*LimitNOFILE/;
  expect(await said("descriptors", await newFolder(), [], limited)).toMatch(few);
  const { dataDir } = await startServe([], limited);
  expect(await said("descriptors", dataDir)).toMatch(few);
  expect(await said("descriptors", dataDir, ["--max-connections", "300"])).toStartWith("ok: ");
});

test("log: one that nothing shrinks", async () => {
  const dataDir = await newFolder();
  const log = join(dataDir, "signalbox.db-wal");
  writeFileSync(log, "", { mode: 0o600 });
  truncateSync(log, 520 * 1024 * 1024);
  const says = "warning: The write-ahead log has 520 MiB. Next: ";
  const [own, replicated] = [
    await said("log", dataDir),
    await said("log", dataDir, ["--external-checkpoints"]),
  ];
  expect(own).toMatch(new RegExp(`^${says}.*sqlite3`));
  expect(replicated).toMatch(new RegExp(`^${says}.*the program that does the checkpoints`));
});

test("backups: none, too old, damaged, failing", async () => {
  const { dataDir, path } = await seed({ signals: 2_000 });
  const dir = temporaryFolder();
  const found = () => said("backups", dataDir, ["--backup-dir", dir]);
  const none = `warning: There is no backup of the last 2h in ${dir}. Next: signalbox serve --data ${dataDir} --backup-dir ${dir}`;
  expect(await found()).toBe(none);
  const nameAt = (at: number) => join(dir, `signalbox-${timeStamp(at)}.db`);
  const old = nameAt(Date.now() - 3 * HOUR_MS);
  await cliHere(["backup", old, "--data", dataDir]);
  expect(await found()).toBe(none);
  const future = nameAt(Date.now() + DAY_MS);
  renameSync(old, future);
  expect(await found()).toBe(none);
  const recent = nameAt(Date.now());
  copyFileSync(future, recent);
  expect(await found()).toStartWith(
    `warning: ${dir} has 1 backup dated in the future, such as ${basename(future)}: they are neither counted nor deleted.`,
  );
  rmSync(future);
  expect(await found()).toStartWith("ok: ");
  changePage(recent, 13, "BTC/USDT", dropLastCell);
  const damaged = await found();
  expect(damaged).toStartWith(`problem: ${recent} is damaged (`);
  expect(damaged).toEndWith(`signalbox backup ${recent} --data ${dataDir}`);
  expect(existsSync(path)).toBe(true);
  const backups = temporaryFolder();
  const good = await startServe(["--backup-dir", backups], { dataDir });
  await good.logged("backup made");
  const newest = join(backups, String(readdirSync(backups)[0]));
  rmSync(newest);
  expect(await said("backups", dataDir)).toStartWith(
    `problem: The newest backup, ${newest}, is gone.`,
  );
  good.kill("SIGTERM");
  await good.exited;
  const server = await startServe(["--backup-dir", join(recent, "b")], { dataDir });
  await server.logged("backup failed");
  expect(await said("backups", dataDir)).toMatch(/^problem: The last backup failed at .*ENOTDIR/);
});

test("configuration: says what serve would say", async () => {
  const dataDir = await newFolder();
  for (const [args, says] of [
    [["--listen", "0.0.0.0:8080"], /^problem: Keys would be sent unencrypted .* --tls-cert FILE/],
    [["--backup-dir", join(dataDir, "b")], /^problem: .*put backups outside of it/],
  ] as const) {
    expect(await said("configuration", dataDir, args)).toMatch(says);
  }
});

test("configuration: default addresses are not checked beside a server that has others", async () => {
  const { dataDir } = await startServe();
  const args = ["doctor", "--json", "--data", dataDir, "--ops-listen", "127.0.0.1:8080"];
  const findings = JSON.parse((await cliHere(args)).stdout) as Finding[];
  expect(findings.at(-1)?.name).toBe("configuration");
  // Another program may use that port.
  expect(findings.at(-1)?.sentence).not.toContain("uses the port of --listen");
});

test("writer: one that cannot store signals is named alike by doctor, status and /readyz", async () => {
  const { dataDir, post } = await startTestApp();
  openForDamage(dataDir).run("BEGIN IMMEDIATE");
  const answer = post(signal);
  // Until then the reason may change, from a disk that does not answer.
  expect((await answer).status).toBe(503);
  const found = () => said("writer", dataDir);
  while (!(await found()).startsWith("problem: ")) await Bun.sleep(200);
  const [, sentence = ""] =
    /^problem: (Signals are not being stored since .*: .*) Next: read the server's log/.exec(
      await found(),
    ) ?? [];
  const status = await cliHere(["status", "--data", dataDir]);
  expect(status.stdout).toContain(`! ${sentence}\n`);
  const ready = (await (await askServer(dataDir, "/readyz")).json()) as Readiness;
  expect(ready.checks["writer"]).toEqual({ ok: false, detail: sentence });
});

test("database: a sound one was read in part, or with --deep whole", async () => {
  const { dataDir } = await seed({ signals: 3_000 });
  expect(await said("database", dataDir)).toStartWith(
    "ok: It opens, and all signals were read and are sound; to verify all of it, add --deep.",
  );
  expect(await said("database", dataDir, ["--deep"])).toStartWith(
    "ok: All of it was read, and is sound.",
  );
});

test.each(["signals", "signal_blocks", "audit"])(
  "database: a damaged page of %s is found, by serve --check, too",
  async (table) => {
    const { dataDir, path } = await seed({ signals: 1 });
    const db = openForDamage(dataDir);
    const { page } = db
      .query("SELECT rootpage AS page FROM sqlite_schema WHERE name = ?")
      .get(table) as { page: number };
    db.close();
    const file = openSync(path, "r+");
    writeSync(file, new Uint8Array(4_096).fill(0xff), 0, 4_096, (page - 1) * 4_096);
    closeSync(file);
    for (const args of [[], ["--deep"]]) {
      const found = await said("database", dataDir, args);
      expect(found).toStartWith(`problem: ${path} is damaged (`);
      expect(found).toEndWith(`restore FILE --force --data ${dataDir}`);
    }
    const check = ["serve", "--check", "--listen", "127.0.0.1:0", "--data", dataDir];
    await expectRefusal(check, `${path} is damaged (`);
  },
);

test("signals, database: a damaged signal is named, once the server was asked for it and in any case", async () => {
  const { dataDir, post } = await startTestApp();
  const { body } = await post({ ...signal, client_signal_id: "a" });
  openForDamage(dataDir).run("UPDATE signals SET price = 84000");
  const id = String(body["id"]);
  const next = `restore FILE --force --data ${dataDir}`;
  for (const args of [[], ["--deep"]]) {
    const found = await said("database", dataDir, args);
    expect(found).toContain(`is damaged (${args.length === 0 ? "" : "hashes: "}signal ${id} does`);
    expect(found).toEndWith(next);
  }
  expect((await doctor(dataDir))["signals"]).toBeUndefined();
  expect(await post({ ...signal, client_signal_id: "a" })).toMatchObject({
    status: 409,
    body: { error: "damaged_signal" },
  });
  const says = `Signal ${id} cannot be read, because what is stored is not what was sent.`;
  expect(await said("signals", dataDir)).toBe(
    `problem: ${says} Next: stop the server, then restore a backup (the current database is kept): signalbox ${next}`,
  );
  const status = await cliHere(["status", "--data", dataDir]);
  expect(status.stdout).toContain(says);
});

test("database: one without tables is a problem", async () => {
  const dataDir = await newFolder();
  const path = join(dataDir, "signalbox.db");
  truncateSync(path, 0);
  expect(await said("database", dataDir)).toStartWith(`problem: ${path} is empty.`);
});

test("backup folder: one with another database's backups", async () => {
  const dir = temporaryFolder();
  const other = await seed({ signals: 1 });
  const file = join(dir, `signalbox-${timeStamp(Date.now())}.db`);
  await cliHere(["backup", file, "--data", other.dataDir]);
  const { dataDir } = await seed({ signals: 1 });
  const foreign = `${file} is a backup of another database than`;
  const args = ["--backup-dir", dir];
  expect(await said("backup folder", dataDir, args)).toStartWith(`problem: ${foreign}`);
  expect(await said("backup folder", other.dataDir, args)).toStartWith(
    `ok: 1 backup in ${dir}, none of another database, the oldest of `,
  );
  const stopped = await doctor(dataDir, args);
  expect(stopped["backups"]?.sentence).toStartWith("There is no backup of the last 2h");
  expect(stopped["database"]?.sentence).toEndWith("to verify all of it, add --deep.");
  const check = ["serve", "--check", "--listen", "127.0.0.1:0", "--data", dataDir, ...args];
  await expectRefusal(check, foreign);
  const server = await startServe(["--backup-dir", dir], { dataDir });
  await server.logged("backup failed, it will be retried");
  const beside = await doctor(dataDir);
  expect(beside["backups"]?.sentence).toContain(foreign);
  expect(beside["database"]?.sentence).toEndWith("to verify all of it, add --deep.");
  const { stdout } = await cliHere(["status", "--data", dataDir]);
  expect(stdout.split(foreign), "one line about it").toHaveLength(2);
  expect(stdout).toContain(`none yet, every 1h to ${dir}`);
  const metrics = await (await askServer(dataDir, "/metrics")).text();
  expect(metrics).toContain("signalbox_backup_failing 1");
});

function failedUnit(folder: string): string {
  return `LoadState=loaded\nExecMainCode=1\nExecMainStatus=2\nEnvironment=SIGNALBOX_DATA=${folder} A=b\nEnvironmentFiles=/nothing (ignore_errors=yes)`;
}

/** A machine whose systemd says this of the unit `signalbox`. */
function withUnit(shown: string, lastLine: string): CliOptions {
  const bin = temporaryFolder();
  const script = (name: string, text: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\ncat <<'END'\n${text}\nEND\n`, { mode: 0o755 });
  script("systemctl", shown);
  script("journalctl", lastLine);
  return { env: { PATH: `${bin}:${process.env["PATH"]}` } };
}

test("server: one of a systemd unit is started with systemctl, and what its last start said is told", async () => {
  const dataDir = await newFolder();
  const line =
    '{"level":"fatal","msg":"SIGNALBOX_BACKUP_COMAND is not a setting: did you mean SIGNALBOX_BACKUP_COMMAND?"}';
  const sentence =
    "The server is not running: the service signalbox ended with exit code 2: SIGNALBOX_BACKUP_COMAND is not a setting: did you mean SIGNALBOX_BACKUP_COMMAND?";
  const next = "correct the cause, then: systemctl start signalbox";
  const options = withUnit(failedUnit(dataDir), line);
  expect(await said("server", dataDir, [], options)).toBe(`warning: ${sentence} Next: ${next}`);
  const health = await cliHere(["healthcheck", "--data", dataDir], options);
  expect(health.stderr).toContain("the service signalbox ended with exit code 2");
  const mint = ["key", "mint", "--desk", "alpha", "--data", dataDir];
  expect((await cliHere(mint, options)).stderr).toEndWith(
    `No server of ${dataDir} answers: the service signalbox ended with exit code 2: SIGNALBOX_BACKUP_COMAND is not a setting: did you mean SIGNALBOX_BACKUP_COMMAND? The key works when it runs: ${next}\n`,
  );
  const copy = join(temporaryFolder(), "copy.db");
  expect(await cliHere(["backup", copy, "--data", dataDir])).toMatchObject({ code: 0 });
  const restored = await cliHere(["restore", copy, "--force", "--data", dataDir], options);
  expect(restored.stderr).toEndWith("Start the server with: systemctl start signalbox\n");
  // The last line may be of another program of the unit.
  const foreign = withUnit(failedUnit(dataDir), '{"copied":3}');
  expect(await said("server", dataDir, [], foreign)).toContain('exit code 2: {"copied":3}. Next:');

  const stopped = withUnit(failedUnit(dataDir).replace("ExecMainStatus=2", "ExecMainStatus=0"), "");
  const start = "Next: systemctl start signalbox";
  expect(await said("server", dataDir, [], stopped)).toBe(
    `warning: The server is not running. ${start}`,
  );
  const late = ["--backup-dir", temporaryFolder(), "--backup-every", "1s"];
  expect(await said("backups", dataDir, late, stopped)).toMatch(
    new RegExp(`^warning: .* ${start}$`),
  );
  for (const other of [failedUnit("/var/lib/signalbox"), "LoadState=not-found"]) {
    expect(await said("server", dataDir, [], withUnit(other, line))).toBe(
      `warning: The server is not running. Next: signalbox serve --data ${dataDir}`,
    );
  }
});

const MEMORY = "/dev/shm";

test.skipIf(!existsSync(MEMORY))("file system: one in memory loses everything", async () => {
  const dataDir = mkdtempSync(join(MEMORY, "signalbox-"));
  onCleanup(() => rmSync(dataDir, { recursive: true }));
  await mintKey(dataDir);
  expect(await said("file system", dataDir)).toMatch(
    /^problem: .*is on tmpfs: a restart of the machine loses everything.*local disk/,
  );
});

test.each([
  ["NFS", 0x6969, "network"],
  ["SMB, as a negative number", 0xff534d42 | 0, "network"],
  ["ext4", 0xef53, undefined],
  ["xfs", 0x58465342, undefined],
])("file system: %s is recognized", (_, type, kind) => {
  expect(fileSystemOf(type)?.kind).toBe(kind as never);
});

test("fsync: a probe that a SIGKILL left is removed by the next", async () => {
  const dataDir = await newFolder();
  const left = join(dataDir, ".doctor.signalbox-partial");
  writeFileSync(left, "");
  expect(await said("fsync", dataDir)).toMatch(/^\w+: An fsync takes [\d.]+ ms\./);
  expect(existsSync(left)).toBe(false);
});

test("fsync: what follows can be stopped at once, even if it is synchronous", async () => {
  const script = `
    import { measureFsync } from "${join(import.meta.dir, "../../src/checks/disk.ts")}";
    await measureFsync("${temporaryFolder()}");
    console.log("measured");
    Bun.sleepSync(30_000);`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  onCleanup(() => child.kill("SIGKILL"));
  await child.stdout.getReader().read();
  child.kill("SIGTERM");
  await child.exited;
  expect(child.signalCode).toBe("SIGTERM");
});
