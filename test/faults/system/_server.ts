/** A machine as it is rented: what is in a terminal there, and what the tests replace. */
import { expect } from "bun:test";
import { appendFileSync, chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { DebianSystem, must } from "../kit/debian.ts";
import type { Pebble } from "../kit/pebble.ts";

/** The name of the machine. The clients refuse that of the pages, so that nobody sends a key to it. */
export const HOST = "signals.test";

const HOME = "/home/admin";
const POLL_MS = 200;

/** Debian, a user with sudo, a name in DNS, and the package in the user's folder. */
export class Server {
  readonly system: DebianSystem;

  private constructor(system: DebianSystem) {
    this.system = system;
  }

  static async rent(file: string, elsewhere: string, network?: Server): Promise<Server> {
    const system = await DebianSystem.install();
    await system.boot({ elsewhere, ...(network === undefined ? {} : { network: network.system }) });
    await system.run(`
      useradd --create-home --shell /bin/bash admin
      echo 'admin ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/admin
      chmod 0700 ${HOME}
      echo "127.0.0.1 localhost $(cat /proc/sys/kernel/hostname) ${HOST}" > /etc/hosts`);
    copyFileSync(file, join(system.root, HOME, basename(file)));
    return new Server(system);
  }

  path(path: string): string {
    return join(this.system.root, path);
  }

  /** Runs a block as the user does. Returns its stdout. */
  run(block: string): Promise<string> {
    return this.system.run(this.#asAdmin(block));
  }

  #asAdmin(block: string): string {
    const file = join(HOME, ".block");
    writeFileSync(this.path(file), block);
    chmodSync(this.path(file), 0o644);
    return `exec runuser --login admin --command 'bash -eu ${file}'`;
  }

  /** Runs it until its output is as expected. */
  async until(block: string, isDone: (output: string) => boolean): Promise<void> {
    while (!isDone(await this.run(block))) await Bun.sleep(POLL_MS);
  }

  /** Starts a program in Python that runs on, and kills it when it has printed this. */
  async watch(block: string, until: string): Promise<void> {
    const pid = join(HOME, ".pid");
    const script = block.replace("python3", () => `echo $$ > ${pid}; exec python3`);
    const child = this.system.spawn(this.#asAdmin(script));
    let output = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout.values({ preventCancel: true })) {
      output += decoder.decode(chunk, { stream: true });
      if (output.includes(until)) break;
    }
    expect(output).toContain(until);
    await this.system.run(`kill -KILL $(cat ${pid})`);
    await child.exited;
  }

  async ready(): Promise<void> {
    const ask = "runuser -u signalbox -- signalbox healthcheck --data /var/lib/signalbox";
    await this.system.run(`until ${ask} >/dev/null 2>&1; do sleep 0.1; done`);
  }

  /** `root`: of the certificates that the directory issues. Every system has that of Let's Encrypt. */
  async trust(root: string, pebble: Pebble): Promise<void> {
    writeFileSync(this.path("usr/local/share/ca-certificates/pebble.crt"), root);
    await this.system.run("update-ca-certificates 2>&1");
    copyFileSync(pebble.caFile, this.path("etc/acme-ca.pem"));
  }

  /** Uses the directory instead of Let's Encrypt, and makes backups without waiting for an hour. */
  shortcut(pebble: Pebble): void {
    appendFileSync(
      this.path("etc/signalbox/signalbox.env"),
      `SIGNALBOX_ACME_DIRECTORY=${pebble.url}
SIGNALBOX_ACME_CA=/etc/acme-ca.pem
SIGNALBOX_BACKUP_EVERY=3s
`,
    );
  }

  /** This machine's Prometheus, as its package installs it. Its minutes are seconds. */
  async installPrometheus(): Promise<void> {
    mkdirSync(this.path("etc/prometheus"));
    for (const file of ["usr/bin/prometheus", "usr/bin/promtool", "etc/default/prometheus"]) {
      copyFileSync(join("/", file), this.path(file));
    }
    const unit = "lib/systemd/system/prometheus.service";
    copyFileSync(join("/", unit), this.path(unit));
    const rules = "/usr/share/signalbox/prometheus";
    await this.system.run(`
      useradd --system --home-dir /var/lib/prometheus --create-home prometheus
      systemctl daemon-reload
      sed -i 's/15s/1s/; s/for: [0-9]*m/for: 1s/' ${rules}/*.yml`);
  }

  /** Copies the user's folder to another machine. */
  async moveHome(to: Server): Promise<void> {
    const folders = ["reader", "key.txt"].map((name) => this.path(join(HOME, name)));
    await must(["cp", "--recursive", ...folders, to.path(HOME)]);
    await to.system.run(`chown -R admin: ${HOME}`);
  }
}
