/** The Debian package, from `deploy/debian/`. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createProgram } from "../../src/commands/program.ts";
import { copyrightFile } from "./copyright.ts";
import { manualPage } from "./man.ts";
import { type Entry, run, stage } from "./staging.ts";

const SCRIPTS = ["postinst", "prerm", "postrm"];
const MONITORING = [
  "grafana/signalbox.json",
  "prometheus/alertmanager.yml",
  "prometheus/prometheus.yml",
  "prometheus/signalbox.rules.yml",
];

/** Where each shell looks for the completions of a command. */
const COMPLETIONS = {
  bash: "bash-completion/completions/signalbox",
  fish: "fish/vendor_completions.d/signalbox.fish",
  zsh: "zsh/vendor-completions/_signalbox",
};

export interface PackageOptions {
  readonly version: string;
  /** As Debian names it. */
  readonly architecture: string;
  readonly executable: string;
  /** What explains it, by its name below `/usr/share/doc/signalbox`. */
  readonly documents: readonly Entry[];
  /** An empty folder to lay it out in. */
  readonly folder: string;
  /** Epoch seconds of everything in it. */
  readonly timeS: number;
  readonly file: string;
}

/** Needs `dpkg-deb`. */
export async function debianPackage(options: PackageOptions): Promise<void> {
  const { architecture, documents, executable, file, folder, timeS, version } = options;
  const contents: Entry[] = [
    { path: "usr/bin/signalbox", from: executable, mode: 0o755 },
    {
      path: "usr/lib/systemd/system/signalbox.service",
      from: "deploy/signalbox.service",
      mode: 0o644,
    },
    { path: "etc/signalbox/signalbox.env", from: "deploy/signalbox.env", mode: 0o644 },
    ...MONITORING.map((name): Entry => {
      return { path: `usr/share/signalbox/${name}`, from: join("deploy", name), mode: 0o644 };
    }),
    ...documents.map((entry) => ({ ...entry, path: `usr/share/doc/signalbox/${entry.path}` })),
    ...(await shared(version, timeS)),
  ];
  const control = readFileSync("deploy/debian/control", "utf8")
    .replace("@VERSION@", debianVersion(version))
    .replace("@ARCHITECTURE@", architecture)
    .replace("@INSTALLED_SIZE@", String(sizeKib(contents)));
  const entries: Entry[] = [
    ...contents,
    { path: "DEBIAN/control", from: { text: control }, mode: 0o644 },
    { path: "DEBIAN/conffiles", from: "deploy/debian/conffiles", mode: 0o644 },
    ...SCRIPTS.map((name): Entry => {
      return { path: `DEBIAN/${name}`, from: join("deploy/debian", name), mode: 0o755 };
    }),
  ];
  stage(folder, entries, timeS);
  // gzip: every Debian and Ubuntu reads it.
  await run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", folder, file], {
    env: { SOURCE_DATE_EPOCH: String(timeS) },
  });
}

/** What Debian expects of every package, in `/usr/share`. */
async function shared(version: string, timeS: number): Promise<Entry[]> {
  const files: Record<string, string | Uint8Array> = {
    "man/man1/signalbox.1.gz": packed(manualPage(createProgram(), version, timeS)),
    "doc/signalbox/changelog.gz": packed(changelog(version, timeS)),
    "doc/signalbox/copyright": await copyrightFile(),
    "lintian/overrides/signalbox": readFileSync("deploy/debian/lintian-overrides"),
  };
  for (const [shell, path] of Object.entries(COMPLETIONS)) {
    files[path] = await run([process.execPath, "src/main.ts", "completion", shell]);
  }
  return Object.entries(files).map(([path, text]) => {
    return { path: `usr/share/${path}`, from: { text }, mode: 0o644 };
  });
}

/** Without gzip's name and time. */
function packed(text: string): Uint8Array {
  return Bun.gzipSync(text, { level: 9 });
}

function changelog(version: string, timeS: number): string {
  const maintainer = /^Maintainer: (.*)$/m.exec(readFileSync("deploy/debian/control", "utf8"))?.[1];
  const date = new Date(timeS * 1_000).toUTCString().replace("GMT", "+0000");
  return `signalbox (${debianVersion(version)}) stable; urgency=medium

  * CHANGELOG.md in this folder says what has changed.

 -- ${maintainer}  ${date}
`;
}

/** "1.2.0-rc.1" comes before "1.2.0"; Debian writes that with a tilde. */
export function debianVersion(version: string): string {
  return version.replace("-", "~");
}

function sizeKib(entries: readonly Entry[]): number {
  const bytes = entries.map(({ from }) => (typeof from === "string" ? statSync(from).size : 0));
  return Math.ceil(bytes.reduce((sum, size) => sum + size, 0) / 1024);
}
