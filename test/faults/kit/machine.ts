/**
 * A machine made of a folder, on which the commands of the documentation are run as they are written: their
 * paths are moved into the folder, and small scripts stand for systemd, journald, ssh and the user `signalbox`.
 */
import { expect } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { shellQuoted } from "../../../src/lib/text/shell.ts";
import { buildExecutable } from "../../kit/executable.ts";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";

/** Folders of the documentation that a machine has. */
const folders = [
  "var/lib/signalbox",
  "var/lib",
  "usr/local/bin",
  "etc/signalbox",
  "etc/nginx",
  "etc/caddy",
  "mnt/elsewhere",
  "backup",
];
/** Longer than any command takes. */
const COMMAND_TIMEOUT_MS = 60_000;

export interface Machine {
  readonly dataDir: string;
  /** A path of the documentation, in the machine's folder. */
  readonly path: (path: string) => string;
  /** Runs one line. It must exit with 0. Returns stdout and stderr. */
  readonly run: (line: string) => Promise<string>;
  /** Starts a line that runs until it is stopped. Resolves when its output has the text. */
  readonly start: (line: string, until: string) => Promise<Started>;
  /** The service's log so far. */
  readonly log: () => string;
  /** Adds an executable script to the machine's `PATH`. */
  readonly script: (name: string, text: string) => void;
}

interface Started {
  readonly output: () => string;
  readonly stop: () => Promise<void>;
}

/** `settings`: of the service, and of every command. */
export async function createMachine(settings: Readonly<Record<string, string>>): Promise<Machine> {
  const executable = await buildExecutable();
  const root = temporaryFolder();
  const inRoot = (path: string) => join(root, path);
  for (const folder of folders) mkdirSync(inRoot(folder), { recursive: true, mode: 0o700 });
  mkdirSync(inRoot("bin"));
  await Bun.write(inRoot("usr/local/bin/signalbox"), Bun.file(executable));
  chmodSync(inRoot("usr/local/bin/signalbox"), 0o755);
  const data = inRoot("var/lib/signalbox");
  const env = {
    ...settings,
    HOME: root,
    PATH: [inRoot("bin"), inRoot("usr/local/bin"), process.env["PATH"], "/usr/sbin:/sbin"].join(
      ":",
    ),
    SIGNALBOX_DATA: data,
  };

  writeFileSync(
    inRoot("environment"),
    Object.entries(env)
      .map(([name, value]) => `export ${name}=${shellQuoted(value)}\n`)
      .join(""),
  );
  const script = (name: string, text: string): void =>
    writeFileSync(inRoot(`bin/${name}`), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  script("systemctl", systemctl(root));
  script("journalctl", `cat ${root}/signalbox.log`);
  script("systemd-run", systemdRun);
  script("timedatectl", "date");

  /** As the pages mean it, on this machine. */
  function moved(line: string): string {
    const paths = new RegExp(`(?<![\\w/.])/(?=(?:${folders.join("|")})\\b)`, "g");
    return line
      .replaceAll(paths, `${root}/`)
      .replaceAll(/\bdist\/signalbox\b/g, executable)
      .replaceAll("sudo -u signalbox ", "")
      .replaceAll("chown -R signalbox:", "chown -R $(id -un):");
  }

  function spawn(line: string) {
    const child = Bun.spawn(["/bin/sh", "-c", moved(line)], {
      cwd: root,
      env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      detached: true,
    });
    let output = "";
    const read = async (stream: ReadableStream<Uint8Array>) => {
      const decoder = new TextDecoder();
      for await (const chunk of stream) output += decoder.decode(chunk, { stream: true });
    };
    const ended = Promise.all([read(child.stdout), read(child.stderr), child.exited]);
    const end = (name: NodeJS.Signals) => {
      if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, name);
    };
    return { child, ended, end, output: () => output };
  }

  // At the end of the test, before the folder is removed.
  onCleanup(() => spawn("systemctl stop signalbox").ended);
  return {
    dataDir: data,
    path: inRoot,
    script,
    log: () =>
      existsSync(inRoot("signalbox.log")) ? readFileSync(inRoot("signalbox.log"), "utf8") : "",
    run: async (line) => {
      const { child, ended, end, output } = spawn(line);
      const timer = setTimeout(() => end("SIGKILL"), COMMAND_TIMEOUT_MS);
      await ended;
      clearTimeout(timer);
      expect({ line, code: child.exitCode, output: output() }).toMatchObject({ line, code: 0 });
      return output();
    },
    start: async (line, until) => {
      const { child, ended, end, output } = spawn(`exec ${line}`);
      onCleanup(() => end("SIGKILL"));
      while (!output().includes(until)) {
        if (child.exitCode !== null) throw new Error(`${line} has ended: ${output()}`);
        await Bun.sleep(5);
      }
      const stop = async () => {
        end("SIGTERM");
        await ended;
        expect({ line, code: child.exitCode }).toEqual({ line, code: 0 });
      };
      return { output, stop };
    },
  };
}

/** `start` returns when the server is ready, and `stop` when it has ended. Other units have scripts of their own. */
function systemctl(root: string): string {
  const pid = join(root, "signalbox.pid");
  return `verb=$1; shift; [ "$1" = --now ] && shift; unit=$1
case $unit in signalbox) ;; *) if [ -x ${root}/bin/$verb-$unit ]; then exec ${root}/bin/$verb-$unit; fi; exit 0;; esac
start() {
  sh -c 'echo $$ > ${pid}; exec signalbox serve' >> ${root}/signalbox.log 2>&1 < /dev/null &
  n=0; until signalbox healthcheck >/dev/null 2>&1; do n=$((n+1)); [ $n -lt 200 ] || exit 1; sleep 0.05; done
}
stop() {
  [ -e ${pid} ] || return 0
  pid=$(cat ${pid}); kill -TERM $pid
  # A zombie has ended.
  while grep -q '^State:.[^ZX]' /proc/$pid/status 2>/dev/null; do sleep 0.02; done
  rm ${pid}
}
case $verb in
  start|enable) start;;
  stop|disable) stop;;
  restart) stop; start;;
  *) exit 0;;
esac`;
}

/** Runs a command with the settings of `-p EnvironmentFile=…`. */
const systemdRun = `while :; do
  case $1 in
    -p) case $2 in EnvironmentFile=*) set -a; . "\${2#*=}"; set +a;; esac; shift 2;;
    -*) shift;;
    *) exec "$@";;
  esac
done`;

/** Makes `ssh HOST command…` on one machine run the command on the other. */
export function connect(from: Machine, to: Machine, host: string): void {
  const [here, there] = [from.path(""), to.path("")].map((path) => path.replace(/\/$/, ""));
  from.script(
    "ssh",
    `[ "$1" = ${host} ] || exit 255; shift
. ${there}/environment
exec sh -c "$(echo "$*" | sed 's#${here}#${there}#g')"`,
  );
}

/** The lines of the blocks of shell commands below a heading; of the whole page without one. */
export async function commandsOf(page: string, heading?: string): Promise<string[]> {
  const text = await Bun.file(`docs/${page}`).text();
  const [, from = ""] = heading === undefined ? ["", text] : text.split(`\n${heading}\n`);
  const section = heading === undefined ? from : (from.split(/^##+ /m)[0] ?? "");
  const blocks = [...section.matchAll(/^ *```sh\n([^]*?)^ *```$/gm)];
  return blocks.flatMap(([, block = ""]) => {
    const lines: string[] = [];
    for (const line of block.replaceAll(/ \\\n */g, " ").split("\n")) {
      const command = line.replace(/ +# .*$/, "").trim();
      const last = lines.at(-1) ?? "";
      // A quoted text may have several lines.
      if (last.split('"').length % 2 === 0) lines[lines.length - 1] = `${last}\n${command}`;
      else if (command !== "") lines.push(command);
    }
    return lines;
  });
}
