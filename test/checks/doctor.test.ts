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
import { cliHere, type CliOptions, freePort, mintKey, signalbox, startServe } from "../kit/cli.ts";
import { changePage, dropLastCell, seed } from "../store/_databases.ts";
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

test("a folder without a database is refused with what to type", async () => {
  const { code, stdout, stderr } = await cliHere(["doctor", "--data", "nothing"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/There is no database in \S+nothing: .* signalbox desk create NAME/);
});

test("permissions: names what other users can access, and the command that ends it", async () => {
  const dataDir = await newFolder();
  const database = join(dataDir, "signalbox.db");
  chmodSync(dataDir, 0o750);
  chmodSync(database, 0o644);
  const { permissions } = await doctor(dataDir);
  expect(permissions).toMatchObject({
    severity: "problem",
    sentence: `${dataDir} has mode 0750.`,
    next: `chmod u+rwX,go= ${dataDir} ${database}`,
  });
  expect(Bun.spawnSync(["sh", "-c", String(permissions?.next)]).exitCode).toBe(0);
  expect((await doctor(dataDir))["permissions"]?.severity).toBe("ok");
});

test.each([
  ["ahead", 60_000, "warning", /is (59|60)\.\d s ahead of this machine's clock .*median/],
  ["a little behind", -20_000, "ok", /is 20\.\d s behind/],
  ["far behind", -120_000, "warning", /is 2 minutes behind/],
] as const)("clock: signals whose time is %s (%d ms): %s", async (_, skewMs, severity, says) => {
  const { dataDir, post } = await startTestApp();
  for (const ms of [skewMs, skewMs, DAY_MS]) {
    expect((await post({ ...signal, signal_time: Date.now() + ms })).status).toBe(201);
  }
  expect((await post(signal)).status).toBe(201);
  const { clock } = await doctor(dataDir);
  expect(clock).toMatchObject({ severity, sentence: expect.stringMatching(says) });
  if (severity !== "ok") expect(clock?.next).toContain("timedatectl");
});

test("ids: ahead of the clock since it stepped forward and back, as status says, too", async () => {
  const { dataDir, post } = await startTestApp();
  expect((await post(signal)).status).toBe(201);
  expect((await doctor(dataDir))["ids"]?.severity).toBe("ok");
  const ahead = ulid(Date.now() + 3_650 * DAY_MS);
  openForDamage(dataDir).run("UPDATE signals SET id = ?", [ahead]);
  const says = "newest signal's id is 3650 days ahead of this machine's clock";
  expect((await doctor(dataDir))["ids"]).toMatchObject({
    severity: "warning",
    sentence: expect.stringContaining(says),
    next: expect.stringContaining("timedatectl"),
  });
  const { stdout } = await cliHere(["status", "--data", dataDir]);
  expect(stdout).toContain(`! The ${says}`);
  expect(stdout).toContain("1 signal in the last minute, 1 in the last hour");
});

test("clock: signals whose time is in seconds", async () => {
  const { dataDir, post } = await startTestApp();
  for (const time of [Date.now(), Date.now(), Math.floor(Date.now() / 1_000)]) {
    expect((await post({ ...signal, signal_time: time })).status).toBe(201);
  }
  expect((await doctor(dataDir))["clock"]).toMatchObject({
    severity: "warning",
    sentence: expect.stringMatching(
      /^A signal_time of the latest 3 signals seems to be in seconds: \d{10}, sent with key \w{26}\.$/,
    ),
    next: "let the bot send milliseconds",
  });
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
    return (await doctor(dataDir, [...tls, ...args]))["certificate"];
  };
  expect(await found(3)).toMatchObject({
    severity: "warning",
    sentence: expect.stringMatching(/^The certificate expires at /),
    next: expect.stringMatching(/^renew it/),
  });
  expect(await found(-3)).toMatchObject({
    severity: "problem",
    sentence: expect.stringMatching(/^The certificate expired at /),
  });
  const urls = ["https://127.0.0.1", "https://console.example.com"] as const;
  expect(await found(90, ["--public-url", urls[0], "--console-url", urls[1]])).toMatchObject({
    severity: "problem",
    sentence: `${join(folder, "cert.pem")} is not valid for console.example.com.`,
    next: expect.stringContaining("--console-url"),
  });
  const proxied = ["--console-url", urls[1], "--trust-proxy", "10.0.0.1"];
  expect(await found(90, proxied)).toMatchObject({ severity: "ok" });
  rmSync(join(folder, "key.pem"));
  const tls = ["--tls-cert", join(folder, "cert.pem"), "--tls-key", join(folder, "key.pem")];
  expect((await doctor(dataDir, tls))["certificate"]).toMatchObject({
    severity: "problem",
    sentence: expect.stringContaining("name a readable PEM file with --tls-key"),
  });
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
  const said = stdout.match(/! The certificate expired at .*, and clients cannot connect\.\n.*/);
  expect(check.code).toBe(0);
  expect(check.stderr).toContain(said?.[0] ?? "nothing of it in status");
});

test("descriptors: the limit of the running server, or else of this command", async () => {
  const limited = {
    program: ["sh", "-c", 'ulimit -n 512; exec "$0" "$@"', ...signalbox],
  };
  const few = {
    severity: "warning",
    sentence: "512 are allowed, enough for 384 connections of 4,096 (--max-connections).",
    next: expect.stringContaining("LimitNOFILE"),
  };
  expect((await doctor(await newFolder(), [], limited))["descriptors"]).toMatchObject(few);
  const { dataDir } = await startServe([], limited);
  expect((await doctor(dataDir))["descriptors"]).toMatchObject(few);
  const enough = await doctor(dataDir, ["--max-connections", "300"]);
  expect(enough["descriptors"]?.severity).toBe("ok");
});

test("log: one that nothing shrinks", async () => {
  const dataDir = await newFolder();
  const log = join(dataDir, "signalbox.db-wal");
  writeFileSync(log, "", { mode: 0o600 });
  truncateSync(log, 520 * 1024 * 1024);
  expect((await doctor(dataDir))["log"]).toMatchObject({
    severity: "warning",
    sentence: "The write-ahead log has 520 MiB.",
    next: expect.stringContaining("sqlite3"),
  });
  const replicated = await doctor(dataDir, ["--external-checkpoints"]);
  expect(replicated["log"]?.next).toContain("the program that does the checkpoints");
});

test("backups: none, too old, damaged, failing", async () => {
  const { dataDir, path } = await seed({ signals: 2_000 });
  const dir = temporaryFolder();
  const found = async () => (await doctor(dataDir, ["--backup-dir", dir]))["backups"];
  const serve = `signalbox serve --data ${dataDir} --backup-dir ${dir}`;
  expect(await found()).toMatchObject({
    severity: "warning",
    sentence: `There is no backup of the last 2h in ${dir}.`,
    next: serve,
  });
  const nameAt = (at: number) =>
    join(dir, `signalbox-${new Date(at).toISOString().replace(/[-:]|\.\d+/g, "")}.db`);
  const old = nameAt(Date.now() - 3 * HOUR_MS);
  await cliHere(["backup", old, "--data", dataDir]);
  expect(await found()).toMatchObject({ severity: "warning", next: serve });
  const future = nameAt(Date.now() + DAY_MS);
  renameSync(old, future);
  expect(await found()).toMatchObject({ severity: "warning", next: serve });
  const recent = nameAt(Date.now());
  copyFileSync(future, recent);
  expect(await found()).toMatchObject({
    severity: "warning",
    sentence: `${dir} has 1 backup dated in the future, such as ${basename(future)}: they are neither counted nor deleted.`,
  });
  rmSync(future);
  expect(await found()).toMatchObject({ severity: "ok" });
  changePage(recent, 13, "BTC/USDT", dropLastCell);
  expect(await found()).toMatchObject({
    severity: "problem",
    sentence: expect.stringContaining(`${recent} is damaged (`),
    next: expect.stringContaining(`signalbox backup ${recent} --data ${dataDir}`),
  });
  expect(existsSync(path)).toBe(true);
  const backups = temporaryFolder();
  const good = await startServe(["--backup-dir", backups], { dataDir });
  await good.logged("backup made");
  const newest = join(backups, String(readdirSync(backups)[0]));
  rmSync(newest);
  expect((await doctor(dataDir))["backups"]).toMatchObject({
    severity: "problem",
    sentence: `The newest backup, ${newest}, is gone.`,
  });
  good.kill("SIGTERM");
  await good.exited;
  const server = await startServe(["--backup-dir", join(recent, "b")], { dataDir });
  await server.logged("backup failed");
  expect((await doctor(dataDir))["backups"]).toMatchObject({
    severity: "problem",
    sentence: expect.stringMatching(/^The last backup failed at .*ENOTDIR/),
  });
});

test("configuration: says what serve would say", async () => {
  const dataDir = await newFolder();
  const { configuration } = await doctor(dataDir, ["--listen", "0.0.0.0:8080"]);
  expect(configuration).toMatchObject({
    severity: "problem",
    sentence: expect.stringMatching(/^Keys would be sent unencrypted .* --tls-cert FILE/),
  });
  const inside = await doctor(dataDir, ["--backup-dir", join(dataDir, "b")]);
  expect(inside["configuration"]?.sentence).toContain("put backups outside of it");
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
  const found = async () => (await doctor(dataDir))["writer"];
  while ((await found())?.severity !== "problem") await Bun.sleep(200);
  expect(await found()).toMatchObject({
    sentence: expect.stringMatching(/^Signals are not being stored since .*: /),
    next: expect.stringContaining("the server's log"),
  });
  const sentence = (await found())?.sentence;
  const status = await cliHere(["status", "--json", "--data", dataDir]);
  const { attention } = JSON.parse(status.stdout) as { attention: { problem: string }[] };
  expect(attention.map(({ problem }) => problem)).toContain(String(sentence));
  const ready = (await (await askServer(dataDir, "/readyz")).json()) as Readiness;
  expect(ready.checks["writer"]).toEqual({ ok: false, detail: String(sentence) });
});

test("database: a sound one was read in part, or with --deep whole", async () => {
  const { dataDir } = await seed({ signals: 3_000 });
  expect((await doctor(dataDir))["database"]).toMatchObject({
    severity: "ok",
    sentence: "It opens, and all signals were read and are sound; to verify all of it, add --deep.",
  });
  expect((await doctor(dataDir, ["--deep"]))["database"]).toMatchObject({
    severity: "ok",
    sentence: "All of it was read, and is sound.",
  });
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
    const says = expect.stringContaining(`${path} is damaged (`);
    for (const args of [[], ["--deep"]]) {
      expect((await doctor(dataDir, args))["database"]).toMatchObject({
        severity: "problem",
        sentence: says,
        next: expect.stringContaining(`restore FILE --force --data ${dataDir}`),
      });
    }
    const check = ["serve", "--check", "--listen", "127.0.0.1:0", "--data", dataDir];
    expect(await cliHere(check)).toMatchObject({ code: 1, stderr: says });
  },
);

test("database: one without tables is a problem", async () => {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  truncateSync(join(dataDir, "signalbox.db"), 0);
  expect((await doctor(dataDir))["database"]).toMatchObject({
    severity: "problem",
    sentence: `${join(dataDir, "signalbox.db")} is empty.`,
  });
});

test("backup folder: one with another database's backups", async () => {
  const dir = temporaryFolder();
  const other = await seed({ signals: 1 });
  const file = join(dir, `signalbox-${timeStamp(Date.now())}.db`);
  await cliHere(["backup", file, "--data", other.dataDir]);
  const { dataDir } = await seed({ signals: 1 });
  expect((await doctor(dataDir, ["--backup-dir", dir]))["backup folder"]).toMatchObject({
    severity: "problem",
    sentence: expect.stringContaining(`${file} is a backup of another database than`),
  });
  expect((await doctor(other.dataDir, ["--backup-dir", dir]))["backup folder"]).toMatchObject({
    severity: "ok",
    sentence: `1 backup in ${dir}, none of another database.`,
  });
  const foreign = `${file} is a backup of another database than`;
  const stopped = await doctor(dataDir, ["--backup-dir", dir]);
  expect(stopped["backups"]?.sentence).toStartWith("There is no backup of the last 2h");
  expect(stopped["database"]?.sentence).toEndWith("to verify all of it, add --deep.");
  const check = ["serve", "--check", "--listen", "127.0.0.1:0", "--data", dataDir];
  expect(await cliHere([...check, "--backup-dir", dir])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(foreign),
  });
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
  const { server } = await doctor(dataDir, [], options);
  expect(server).toEqual({ name: "server", severity: "warning", sentence, next });
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
  const foreign = await doctor(dataDir, [], withUnit(failedUnit(dataDir), '{"copied":3}'));
  expect(foreign["server"]?.sentence).toEndWith('ended with exit code 2: {"copied":3}.');

  const stopped = failedUnit(dataDir).replace("ExecMainStatus=2", "ExecMainStatus=0");
  expect((await doctor(dataDir, [], withUnit(stopped, "")))["server"]).toMatchObject({
    sentence: "The server is not running.",
    next: "systemctl start signalbox",
  });
  const late = ["--backup-dir", temporaryFolder(), "--backup-every", "1s"];
  const { backups } = await doctor(dataDir, late, withUnit(stopped, ""));
  expect(backups).toMatchObject({ severity: "warning", next: "systemctl start signalbox" });
  for (const other of [failedUnit("/var/lib/signalbox"), "LoadState=not-found"]) {
    expect((await doctor(dataDir, [], withUnit(other, line)))["server"]).toMatchObject({
      sentence: "The server is not running.",
      next: `signalbox serve --data ${dataDir}`,
    });
  }
});

const MEMORY = "/dev/shm";

test.skipIf(!existsSync(MEMORY))("file system: one in memory loses everything", async () => {
  const dataDir = mkdtempSync(join(MEMORY, "signalbox-"));
  onCleanup(() => rmSync(dataDir, { recursive: true }));
  await mintKey(dataDir);
  expect((await doctor(dataDir))["file system"]).toMatchObject({
    severity: "problem",
    sentence: expect.stringContaining("is on tmpfs: a restart of the machine loses everything"),
    next: expect.stringContaining("local disk"),
  });
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
  expect((await doctor(dataDir))["fsync"]?.sentence).toMatch(/^An fsync takes [\d.]+ ms\./);
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
