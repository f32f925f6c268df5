/** What `bun run release` writes. `test/faults/system/release.test.ts` builds, installs and upgrades a real one. */
import { expect, test } from "bun:test";
import { bundledPackages } from "../../.ci/licences.ts";
import { copyrightFile } from "../../.ci/release/copyright.ts";
import { debianVersion } from "../../.ci/release/debian.ts";
import { manualPage } from "../../.ci/release/man.ts";
import { releaseNotes } from "../../.ci/release/notes.ts";
import { billOfMaterials } from "../../.ci/release/sbom.ts";
import { targets } from "../../.ci/release/targets.ts";
import packageJson from "../../package.json" with { type: "json" };
import { createProgram } from "../../src/commands/program.ts";

const TIME_S = 1_700_000_000;

interface Component {
  readonly type: string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly licenses: { license: { id: string } }[];
  readonly hashes?: { alg: string; content: string }[];
}

test("the bill of materials lists what THIRD-PARTY.md lists, with the hashes of bun.lock", async () => {
  const bill = (await billOfMaterials("1.2.3", TIME_S)) as {
    metadata: { timestamp: string; component: { version: string } };
    components: Component[];
  };
  expect(bill).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.6", version: 1 });
  expect(bill.metadata.timestamp).toBe("2023-11-14T22:13:20.000Z");
  expect(bill.metadata.component.version).toBe("1.2.3");
  const [bun, ...packages] = bill.components;
  expect(bun).toMatchObject({ type: "platform", name: "bun", version: Bun.version });
  const page = await Bun.file("THIRD-PARTY.md").text();
  const listed = [...page.matchAll(/^\| (\S+) \| (\d\S+) \| (\S+) \|$/gm)].map((row) =>
    row.slice(1),
  );
  expect(
    packages.map(({ name, version, licenses }) => [name, version, licenses[0]?.license.id]),
  ).toEqual(listed);
  for (const { hashes } of packages) expect(hashes?.[0]?.content).toMatch(/^[0-9a-f]{128}$/);
  const tab = packages.find(({ name }) => name === "@bomb.sh/tab");
  expect(tab?.purl).toBe(`pkg:npm/%40bomb.sh/tab@${packageJson.dependencies["@bomb.sh/tab"]}`);
  expect(new Set(packages.map(({ purl }) => purl)).size).toBe(packages.length);
});

test("the manual page has every command and option, and the same bytes each time", () => {
  const page = manualPage(createProgram(), "1.2.3", TIME_S);
  expect(manualPage(createProgram(), "1.2.3", TIME_S)).toBe(page);
  const plain = page.replaceAll("\\-", "-");
  expect(plain).toStartWith('.TH SIGNALBOX 1 "2023-11-14" "signalbox 1.2.3"');
  const commands = createProgram().commands.flatMap((one) => [one, ...one.commands]);
  for (const command of commands.filter(({ commands: { length } }) => length === 0)) {
    if (["help", "copy-file", "own-backup", "drill-backup", "complete"].includes(command.name()))
      continue;
    const name = command.parent?.parent
      ? `${command.parent.name()} ${command.name()}`
      : command.name();
    const [, section = ""] = plain.split(`.SS signalbox ${name} `);
    expect(section, name).toContain(`  $ `);
    for (const { long } of command.options) expect(section, name).toContain(String(long));
  }
  // A line that begins so would be a request of roff.
  expect(
    page.split("\n").filter((line) => /^[.'](?!(TH|SH|SS|TP|B|I|PP|nf|fi|nh|ad)\b)/.test(line)),
  ).toEqual([]);
});

test("the package's copyright file names the licence of each package that it contains", async () => {
  const text = await copyrightFile();
  for (const { name, version } of await bundledPackages()) {
    expect(text).toContain(`the authors of ${name}\n`);
    expect(text).toContain(`\n ${name} ${version}:\n .\n `);
  }
});

test("a version before a release is lower for Debian, too", () => {
  expect(debianVersion("1.2.0-rc.1")).toBe("1.2.0~rc.1");
  expect(debianVersion("1.2.0")).toBe("1.2.0");
});

test("the notes say what was not tested, what is not committed, and what changed", () => {
  const { version } = packageJson;
  const notes = releaseNotes(version, { commit: "abc", isClean: false, timeS: TIME_S }, targets);
  const untested = notes.split("\n").filter((line) => line.includes("**untested**"));
  expect(untested.map((line) => /`(.+?)`/.exec(line)?.[1])).toEqual([
    `signalbox_${version}_arm64.deb`,
    `signalbox-${version}-linux-arm64.tar.gz`,
    `signalbox-${version}-macos-arm64.tar.gz`,
    `signalbox-${version}-macos-x64.tar.gz`,
  ]);
  expect(notes).toContain("`abc` **with changes that are not committed**");
  expect(notes).toContain(`\n## ${version} `);
  expect(() => releaseNotes("9.9.9", { commit: "abc", isClean: true, timeS: 0 }, targets)).toThrow(
    "CHANGELOG.md has no part about 9.9.9",
  );
});

test("every platform's Bun has a hash, and is the Bun that builds", async () => {
  const lock = Bun.JSONC.parse(await Bun.file(".ci/release/runtimes/bun.lock").text()) as {
    packages: Record<string, [id: string, registry: string, about: object, hash: string]>;
  };
  const locked = Object.values(lock.packages).map(([id, registry, , hash]) => {
    return { id, registry, isHashed: /^sha512-[\w+/]{86}==$/.test(hash) };
  });
  const version = packageJson.devDependencies["bun-types"];
  expect(locked).toEqual(
    targets
      .map(({ runtime }) => ({ id: `@oven/${runtime}@${version}`, registry: "", isHashed: true }))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  );
});

test("docs/install.md says the same about each platform", async () => {
  const page = await Bun.file("docs/install.md").text();
  for (const { name, debian, state } of targets) {
    const files = [`signalbox-VERSION-${name}.tar.gz`];
    if (debian !== null) files.push(`signalbox_VERSION_${debian}.deb`);
    for (const file of files) {
      const row = page.split("\n").find((line) => line.includes(`\`${file}\``));
      expect(row).toContain(`| ${state}`);
    }
  }
});
