/** A release as it is built, the life of its Debian package on a machine with systemd, and docs/install.md. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import { makeCertificate, writeCertificate } from "../../kit/certificates.ts";
import type { LoadResult } from "../../kit/client.ts";
import { startLoad } from "../../kit/load.ts";
import { DebianSystem, installOriginal, must, removeOriginal } from "../kit/debian.ts";
import { expectKept, report } from "../kit/faults.ts";
import { asVersion, copyProject, packageIn, release, work } from "./_release.ts";
import { tellStory } from "./_story.ts";

const { version } = packageJson;
const PREVIOUS = "0.0.9";

/** The folders with what `bun run release` wrote. */
const built = { here: "", elsewhere: "" };

beforeAll(async () => {
  [built.here, built.elsewhere] = await Promise.all([
    release(copyProject("here")),
    release(copyProject("else/where/far"), "077"),
    installOriginal(),
  ]);
});

afterAll(() => {
  removeOriginal();
  rmSync(work, { recursive: true });
});

test("the same commit gives the same bytes in another folder, with another umask and time zone", () => {
  const sums = readFileSync(join(built.here, "SHA256SUMS"), "utf8");
  expect(readFileSync(join(built.elsewhere, "SHA256SUMS"), "utf8")).toBe(sums);
  expect(sums.split("\n")).toHaveLength(5);
  expect(readFileSync(join(built.here, "RELEASE.md"), "utf8")).not.toContain("not committed");
});

test("the archive has the executable of `bun run build`, and nothing of this machine", async () => {
  const folder = join(work, "unpacked");
  mkdirSync(folder);
  const archive = join(built.here, `signalbox-${version}-linux-x64.tar.gz`);
  await must(["tar", "-xzf", archive, "-C", folder]);
  const list = await must(["tar", "--list", "--verbose", "--numeric-owner", "-zf", archive], {
    env: { TZ: "UTC" },
  });
  const strange = /^(?!(?:drwxr-xr-x|-rwxr-xr-x|-rw-r--r--) 0\/0 +\d+ 2026-01-01 00:00 ).*$/m;
  expect(list).not.toMatch(strange);
  const unpacked = join(folder, `signalbox-${version}-linux-x64`);
  expect(readdirSync(unpacked).toSorted().join(" ")).toBe(
    "CHANGELOG.md LICENSE LICENSES README.md SECURITY.md THIRD-PARTY.md clients deploy docs schema.sql signalbox",
  );
  const executable = readFileSync(join(unpacked, "signalbox"));
  await must([process.execPath, "build.ts"], { cwd: join(work, "here") });
  expect(readFileSync(join(work, "here/dist/signalbox")).equals(executable)).toBe(true);
  expect(executable.includes(work)).toBe(false);
});

test("the package names what it needs, and its configuration file", async () => {
  const about = await must(["dpkg-deb", "--field", packageIn(built.here)]);
  expect(about).toContain(`Package: signalbox\nVersion: ${version}\nArchitecture: amd64\n`);
  expect(about).toContain("Depends: init-system-helpers (>= 1.52), libc6 (>= 2.17), passwd\n");
  const contents = await must(["dpkg-deb", "--contents", packageIn(built.here)]);
  const files = contents.split("\n").map((line) => line.split(/ +/));
  expect(files.filter(([, owner]) => owner !== "root/root")).toEqual([]);
  const modeOf = (path: string) => files.find((file) => file.at(-1) === `./${path}`)?.[0];
  expect(modeOf("usr/bin/signalbox")).toBe("-rwxr-xr-x");
  for (const path of [
    "usr/lib/systemd/system/signalbox.service",
    "etc/signalbox/signalbox.env",
    "usr/share/signalbox/prometheus/signalbox.rules.yml",
    "usr/share/doc/signalbox/docs/install.md",
    "usr/share/doc/signalbox/clients/python/feed.py",
  ]) {
    expect(modeOf(path)).toBe("-rw-r--r--");
  }
});

test("lintian finds no error in the package, and man shows the manual page", async () => {
  const file = packageIn(built.here);
  expect(await must(["lintian", "--allow-root", "--fail-on=error", file])).toBe("");
  const folder = join(work, "package");
  await must(["dpkg-deb", "--extract", file, folder]);
  const shared = join(folder, "usr/share");
  const page = await must(["man", "--local-file", join(shared, "man/man1/signalbox.1.gz")]);
  expect(page).toContain("signalbox key mint [options]");
  const scripts = [
    "bash-completion/completions/signalbox",
    "fish/vendor_completions.d/signalbox.fish",
    "zsh/vendor-completions/_signalbox",
  ].map((path) => readFileSync(join(shared, path), "utf8"));
  for (const script of scripts) expect(script).toContain("signalbox");
});

const URL = "https://127.0.0.1:443";
const DATA = "/var/lib/signalbox";
const asService = "setpriv --reuid=signalbox --regid=signalbox --clear-groups --";

/** The settings of deploy/signalbox.env for HTTPS, without their `#`. */
async function turnHttpsOn(machine: DebianSystem): Promise<void> {
  const at = join(machine.root, "etc/signalbox");
  writeCertificate(at, await makeCertificate("first"));
  const env = readFileSync(join(at, "signalbox.env"), "utf8");
  const [before, https = "", after] = env.split(/^(?=# 2\. |# 3\. )/m);
  const settings = https.replaceAll(/^#(?=SIGNALBOX_)/gm, "");
  writeFileSync(join(at, "signalbox.env"), [before, settings, after].join(""));
  await machine.run(`
    chgrp signalbox /etc/signalbox/key.pem
    chmod 0640 /etc/signalbox/key.pem
    systemctl restart signalbox`);
}

/** Waits until the server answers. */
async function curl(machine: DebianSystem, url: string, ...args: string[]): Promise<string> {
  const retry = ["--retry", "100", "--retry-delay", "1", "--retry-connrefused"];
  return must([...machine.network, "curl", "-ksS", "--fail", ...retry, ...args, url]);
}

function post(machine: DebianSystem, url: string, key: string): Promise<string> {
  const body = { source: "venue_1", type: "crypto", symbol: "BTC/USDT", side: "open" };
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  return curl(
    machine,
    `${url}/v1/signals`,
    ...Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]),
    "--data",
    JSON.stringify({ ...body, client_signal_id: "first" }),
  );
}

/** Installs a package over the present one under load: no request is cut, and no signal lost. */
async function replace(machine: DebianSystem, file: string, key: string, results: LoadResult[]) {
  const [process_, { length }] = [await mainPid(machine), results];
  const options = { url: URL, key, retry: true, prefix: `${basename(file)}-${length}` };
  const load = startLoad(options, machine.network);
  await load.more(100, 201);
  await machine.run(`dpkg --install ${machine.give(file)}`);
  await load.more(100, 201);
  const own = await load.end();
  expect(own.filter(({ outcome, maybeUnsent }) => outcome === "broken" && !maybeUnsent)).toEqual(
    [],
  );
  const pid = await mainPid(machine);
  expect(pid).not.toBe(process_);
  // Otherwise "(deleted)" follows.
  expect(await machine.run(`readlink /proc/${pid}/exe`)).toBe("/usr/bin/signalbox");
  results.push(...own);
  return expectKept(join(machine.root, DATA), results);
}

function installedVersion(machine: DebianSystem): Promise<string> {
  return machine.run("dpkg-query --show --showformat='${Version}' signalbox");
}

function mainPid(machine: DebianSystem): Promise<string> {
  return machine.run("systemctl show --property=MainPID --value signalbox");
}

test("the package: installed, used, upgraded, rolled back, removed and purged", async () => {
  const current = packageIn(built.here);
  const old = await asVersion(PREVIOUS, current);
  const machine = await DebianSystem.install();

  // Where systemd does not run, as in the build of an image: installed, enabled, not started.
  await machine.run(`dpkg --install ${machine.give(old)}`);
  await machine.boot();
  expect(await machine.run("systemctl is-enabled signalbox; systemctl is-active signalbox")).toBe(
    "enabled\nactive",
  );
  expect(await machine.run("stat -c '%U %G %a' /var/lib/signalbox /etc/signalbox")).toBe(
    "signalbox signalbox 700\nroot signalbox 750",
  );
  expect(await machine.run("systemd-analyze verify signalbox.service 2>&1")).toBe("");
  // Fails above 2.0.
  await machine.run("systemd-analyze security --threshold=20 signalbox.service");

  // The first signal needs no settings.
  const desk = `${asService} signalbox desk create alpha --data ${DATA} >/dev/null`;
  const mint = `${asService} signalbox key mint --desk alpha --data ${DATA}`;
  const key = await machine.run(`${desk}; ${mint}`);
  const { id } = JSON.parse(await post(machine, "http://127.0.0.1:8080", key)) as { id: string };

  // HTTPS on a port below 1024, and a new certificate without a restart.
  await turnHttpsOn(machine);
  expect(await post(machine, URL, key)).toBe(JSON.stringify({ id, deduped: true }));
  const before = await mainPid(machine);
  const folder = join(machine.root, "etc/signalbox");
  const second = await makeCertificate("second");
  writeFileSync(join(folder, "cert.pem"), second.cert);
  writeFileSync(join(folder, "key.pem"), second.key);
  await machine.run("systemctl reload signalbox");
  expect(await mainPid(machine)).toBe(before);
  const log = "journalctl --unit=signalbox";
  await machine.run(`until ${log} | grep -q "new certificate in use"; do sleep 0.1; done`);
  const talk = ["--verbose", "--stderr", "-", "--output", "/dev/null"];
  expect(await curl(machine, `${URL}/openapi.yaml`, ...talk)).toContain("subject: CN=second");

  // A reload that comes too early, as from a hook at boot.
  await machine.run("systemctl restart signalbox; systemctl reload signalbox");
  expect(await post(machine, URL, key)).toContain(id);

  const results: LoadResult[] = [];
  const env = readFileSync(join(folder, "signalbox.env"), "utf8");
  await replace(machine, current, key, results);
  expect(await installedVersion(machine)).toBe(version);
  const kept = await replace(machine, old, key, results);
  expect(await installedVersion(machine)).toBe(PREVIOUS);
  expect(readFileSync(join(folder, "signalbox.env"), "utf8")).toBe(env);

  // A service that was stopped for good stays stopped.
  await machine.run("systemctl disable --now signalbox");
  await machine.run(`dpkg --install ${machine.give(current)}`);
  expect(await machine.run("systemctl is-active signalbox || true")).toBe("inactive");
  await machine.run("systemctl enable --now signalbox");
  expect(await post(machine, URL, key)).toContain(id);

  // Removal keeps the data and the settings; the package can come back.
  await machine.run("dpkg --remove signalbox");
  expect(await machine.run("systemctl is-active signalbox || true")).toBe("inactive");
  await machine.run(`dpkg --install ${machine.give(current)}`);
  expect(await post(machine, URL, key)).toBe(JSON.stringify({ id, deduped: true }));

  await machine.run(`echo copy > ${DATA}-backups/backup.db`);
  expect(await machine.run("dpkg --purge signalbox")).toContain("kept the backups");
  const paths = [DATA, "/etc/signalbox", "/usr/bin/signalbox", `${DATA}-backups/backup.db`];
  const left = paths.filter((path) => existsSync(join(machine.root, path)));
  expect(left).toEqual([`${DATA}-backups/backup.db`]);
  expect(statSync(join(machine.root, `${DATA}-backups`)).mode & 0o777).toBe(0o700);
  report("the package is upgraded and rolled back under load", 2, `${kept} signals, none lost`);
});

test("status, doctor and healthcheck say why systemd does not run the service, and what to type", async () => {
  const machine = await DebianSystem.install();
  await machine.boot();
  const where = `--data ${DATA}`;
  const ask = "sudo -u signalbox signalbox";
  await machine.run(`dpkg --install ${machine.give(packageIn(built.here))}`);
  await machine.run(`
    for attempt in $(seq 100); do ${ask} healthcheck ${where} && break; sleep 0.1; done
    systemctl stop signalbox`);
  const status = () => machine.run(`${ask} status ${where}`);
  expect(await status()).toContain("! The server is not running.\n  systemctl start signalbox\n");

  const settings = join(machine.root, "etc/signalbox/signalbox.env");
  appendFileSync(settings, "SIGNALBOX_BACKUP_COMAND=true\n");
  await machine.run(`
    systemctl start signalbox
    for attempt in $(seq 100); do systemctl is-failed signalbox && break; sleep 0.1; done`);
  const ended = "! The server is not running: the service signalbox ended with exit code 2";
  // The service's user may not read the journal.
  expect(await status()).toContain(
    `${ended}.\n  read why with: sudo journalctl -u signalbox -n 5; correct it, then: systemctl start signalbox\n`,
  );
  await machine.run("usermod --append --groups systemd-journal signalbox");
  const sentence =
    "SIGNALBOX_BACKUP_COMAND is not a setting: did you mean SIGNALBOX_BACKUP_COMMAND?";
  const next = "correct the cause, then: systemctl start signalbox";
  expect(await status()).toContain(`${ended}: ${sentence}\n  ${next}\n`);
  expect(await machine.run(`${ask} doctor ${where} || true`)).toMatch(
    /^warn {2}server .* exit code 2: SIGNALBOX_BACKUP_COMAND .* systemctl start/m,
  );
  const health = await machine.run(`${ask} healthcheck ${where} 2>&1 || true`);
  expect(health).toContain(`Next: ${next}`);
});

test("docs/install.md: a new server, and another one after it is lost", async () => {
  await tellStory(packageIn(built.here));
  report("docs/install.md on two machines", 1, "each command run; each signal ordered once");
});
