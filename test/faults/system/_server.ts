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
const UNTIL_MS = 120_000;

export type Server = Awaited<ReturnType<typeof rentServer>>;

/** Debian, a user with sudo, a name in DNS, and the package in the user's folder. */
export async function rentServer(file: string, elsewhere: string, network?: DebianSystem) {
  const system = await DebianSystem.install();
  await system.boot({ elsewhere, ...(network === undefined ? {} : { network }) });
  await system.run(`
    useradd --create-home --shell /bin/bash admin
    echo 'admin ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/admin
    chmod 0700 ${HOME}
    echo "127.0.0.1 localhost $(cat /proc/sys/kernel/hostname) ${HOST}" > /etc/hosts`);
  const path = (inSystem: string): string => join(system.root, inSystem);
  copyFileSync(file, join(path(HOME), basename(file)));

  /** As the user does. */
  function asAdmin(block: string): string {
    const script = join(HOME, ".block");
    writeFileSync(path(script), block);
    chmodSync(path(script), 0o644);
    return `exec runuser --login admin --command 'bash -eu ${script}'`;
  }

  /** Runs a block as the user does. Returns its stdout. */
  const run = (block: string): Promise<string> => system.run(asAdmin(block));

  return {
    system,
    path,
    run,
    /** Runs it until its output is as expected. Throws with the output if that takes too long. */
    until: async (block: string, isDone: (output: string) => boolean): Promise<void> => {
      for (let left = UNTIL_MS / POLL_MS; ; left--) {
        const output = await run(block);
        if (isDone(output)) return;
        if (left <= 0) throw new Error(`${block}still shows:\n${output}`);
        await Bun.sleep(POLL_MS);
      }
    },
    /** Starts a program in Python that runs on, and kills it when it has printed this. */
    watch: async (block: string, wanted: string): Promise<void> => {
      const pid = join(HOME, ".pid");
      const script = block.replace("python3", () => `echo $$ > ${pid}; exec python3`);
      const child = system.spawn(asAdmin(script));
      let output = "";
      for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
        output += text;
        if (output.includes(wanted)) break;
      }
      expect(output).toContain(wanted);
      await system.run(`kill -KILL $(cat ${pid})`);
      await child.exited;
    },
    ready: async (): Promise<void> => {
      const ask = "runuser -u signalbox -- signalbox healthcheck --data /var/lib/signalbox";
      await system.run(`until ${ask} >/dev/null 2>&1; do sleep 0.1; done`);
    },
    /** `root`: of the certificates that the directory issues. Every system has that of Let's Encrypt. */
    trust: async (root: string, pebble: Pebble): Promise<void> => {
      writeFileSync(path("usr/local/share/ca-certificates/pebble.crt"), root);
      await system.run("update-ca-certificates 2>&1");
      copyFileSync(pebble.caFile, path("etc/acme-ca.pem"));
    },
    /** Uses the directory instead of Let's Encrypt, and makes backups without waiting for an hour. */
    shortcut: (pebble: Pebble): void =>
      appendFileSync(
        path("etc/signalbox/signalbox.env"),
        `SIGNALBOX_ACME_DIRECTORY=${pebble.url}
SIGNALBOX_ACME_CA=/etc/acme-ca.pem
SIGNALBOX_BACKUP_EVERY=3s
`,
      ),
    /** This machine's Prometheus, as its package installs it. Its minutes are seconds. */
    installPrometheus: async (): Promise<void> => {
      mkdirSync(path("etc/prometheus"));
      const unit = "lib/systemd/system/prometheus.service";
      for (const one of [
        "usr/bin/prometheus",
        "usr/bin/promtool",
        "etc/default/prometheus",
        unit,
      ]) {
        copyFileSync(join("/", one), path(one));
      }
      await system.run(`
        useradd --system --home-dir /var/lib/prometheus --create-home prometheus
        systemctl daemon-reload
        sed -i 's/15s/1s/; s/for: [0-9]*m/for: 1s/' /usr/share/signalbox/prometheus/*.yml`);
    },
    /** Copies the user's folder to another machine. */
    moveHome: async (to: { path: typeof path; system: DebianSystem }): Promise<void> => {
      const folders = ["reader", "key.txt"].map((name) => path(join(HOME, name)));
      await must(["cp", "--recursive", ...folders, to.path(HOME)]);
      await to.system.run(`chown -R admin: ${HOME}`);
    },
  };
}
