/**
 * `bun run release [--only linux-x64]` writes `dist/release/`: archives, Debian packages, the bill of materials, notes
 * and checksums. The same commit gives the same bytes. `SECURITY.md` says how to verify them.
 */
import { readdirSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compile } from "../../build.ts";
import packageJson from "../../package.json" with { type: "json" };
import { debianPackage, debianVersion } from "./debian.ts";
import { releaseNotes } from "./notes.ts";
import { installRuntime } from "./runtimes.ts";
import { billOfMaterials } from "./sbom.ts";
import { readSource, type Source } from "./source.ts";
import { archive, type Entry, stage } from "./staging.ts";
import { type Target, targets } from "./targets.ts";

const OUT = "dist/release";
const { version } = packageJson;

const { values } = parseArgs({ options: { only: { type: "string", multiple: true } } });
const chosen = targets.filter(({ name }) => values.only?.includes(name) ?? true);

try {
  requireTools();
  const source = await readSource(version);
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), "signalbox-release-"));
  try {
    for (const target of chosen) await releaseFor(target, source, join(work, target.name));
  } finally {
    rmSync(work, { recursive: true });
  }
  await write(
    `signalbox-${version}.cdx.json`,
    `${JSON.stringify(await billOfMaterials(version, source.timeS), null, 2)}\n`,
  );
  await write("RELEASE.md", releaseNotes(version, source, chosen));
  await write("SHA256SUMS", await checksums());
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

function requireTools(): void {
  const pinned = packageJson.devDependencies["bun-types"];
  if (Bun.version !== pinned) {
    throw new Error(`This is Bun ${Bun.version}. Type: npx --yes bun@${pinned} run release`);
  }
  if (process.platform !== "linux" || Bun.which("dpkg-deb") === null) {
    throw new Error("A release needs dpkg-deb and GNU tar: run it on Debian or Ubuntu.");
  }
  if (chosen.length === 0) {
    throw new Error(`--only takes: ${targets.map(({ name }) => name).join(", ")}.`);
  }
}

async function releaseFor(target: Target, { timeS }: Source, folder: string): Promise<void> {
  const name = `signalbox-${version}-${target.name}`;
  const executable = join(folder, "signalbox");
  const runtime = await installRuntime(target, join(folder, "runtime"));
  await compile({ target: target.compile, outfile: executable, runtime });
  const staged = join(folder, name);
  stage(
    staged,
    [{ path: "signalbox", from: executable, mode: 0o755 }, ...documents(), ...service(target)],
    timeS,
  );
  await archive(staged, join(OUT, `${name}.tar.gz`));
  say(`${name}.tar.gz`);
  if (target.debian === null) return;
  const file = `signalbox_${debianVersion(version)}_${target.debian}.deb`;
  await debianPackage({
    version,
    architecture: target.debian,
    executable,
    documents: documents(),
    folder: join(folder, "debian"),
    timeS,
    file: join(OUT, file),
  });
  say(file);
}

/** The pages, and the clients that they tell the reader to copy. In the same folders, for the links between them. */
function documents(): Entry[] {
  const texts = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "SECURITY.md",
    "THIRD-PARTY.md",
    "schema.sql",
  ];
  return [...texts, ...filesOf("{LICENSES,docs,clients}/**/*.{txt,md,ts,py,sh}")].map(plain);
}

/** What runs it as a service, and watches it. */
function service({ os }: Target): Entry[] {
  if (os !== "linux") return [];
  const files = filesOf("deploy/**");
  return files.filter((file) => !file.startsWith("deploy/debian/")).map(plain);
}

function filesOf(pattern: string): string[] {
  return [...new Bun.Glob(pattern).scanSync()].toSorted();
}

function plain(path: string): Entry {
  return { path, from: path, mode: 0o644 };
}

/** As `sha256sum --check` reads them. */
async function checksums(): Promise<string> {
  const lines = readdirSync(OUT)
    .toSorted()
    .map((name) => {
      const hash = new Bun.CryptoHasher("sha256").update(readFileSync(join(OUT, name)));
      return `${hash.digest("hex")}  ${name}\n`;
    });
  return lines.join("");
}

async function write(name: string, text: string): Promise<void> {
  await Bun.write(join(OUT, name), text);
  say(name);
}

function say(name: string): void {
  process.stderr.write(`wrote ${OUT}/${name}\n`);
}
