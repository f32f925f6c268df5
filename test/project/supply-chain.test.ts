/** What goes into the build: pinned packages, no install scripts, known licences, workflows that call only the gate and the release. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { readPackage, thirdPartyPage } from "../../.ci/licences.ts";
import packageJson from "../../package.json" with { type: "json" };
import { temporaryFolder } from "../kit/setup.ts";

const SHA512 = /^sha512-[\w+/]{86}==$/;

test("dependencies are pinned to exact versions", () => {
  const { dependencies, devDependencies } = packageJson;
  const versions = Object.entries({ ...dependencies, ...devDependencies });
  expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
  expect(versions.length).toBeGreaterThan(0);
});

test("every package in bun.lock comes from the registry and has a hash", async () => {
  const lock = Bun.JSONC.parse(await Bun.file("bun.lock").text()) as {
    packages: Record<string, string[]>;
  };
  const packages = Object.values(lock.packages);
  expect(packages.length).toBeGreaterThan(100);
  // A package from Git, a folder or another address has fewer or other elements.
  const wrong = packages.filter(
    ([id = "", registry, , hash = ""]) =>
      !/^@?[^@]+@\d[^:]*$/.test(id) || registry !== "" || !SHA512.test(hash),
  );
  expect(wrong).toEqual([]);
});

test("Bun is the same version in package.json, the gate and the pages", async () => {
  for (const file of [
    ".ci/run",
    ".github/workflows/release.yml",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
  ]) {
    const versions = (await Bun.file(file).text()).matchAll(/\bbun@([\w.]+)/g);
    expect([file, ...new Set([...versions].map(([, version]) => version))]).toEqual([
      file,
      packageJson.devDependencies["bun-types"],
    ]);
  }
});

/** Installs a project that trusts its one package, and returns which of the two ran a script. */
async function scriptsRunWith(bunfig: string): Promise<string[]> {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "package"));
  const write = (file: string, name: string, about: object): void => {
    const scripts = { postinstall: `touch '${join(folder, name)}'` };
    writeFileSync(join(folder, file), JSON.stringify({ ...about, scripts }));
  };
  const dependencies = { dependency: "file:./package" };
  write("package.json", "project-ran", { dependencies, trustedDependencies: ["dependency"] });
  write("package/package.json", "dependency-ran", { name: "dependency", version: "1.0.0" });
  writeFileSync(join(folder, "bunfig.toml"), bunfig);
  await Bun.$`${process.execPath} install`.cwd(folder).quiet();
  expect(existsSync(join(folder, "node_modules/dependency/package.json"))).toBe(true);
  return ["project-ran", "dependency-ran"].filter((name) => existsSync(join(folder, name)));
}

test("install scripts do not run, not even those of a trusted package", async () => {
  expect(await scriptsRunWith(await Bun.file("bunfig.toml").text())).toEqual([]);
  // The same project with Bun's defaults shows that the scripts would run.
  expect(await scriptsRunWith("")).toEqual(["project-ran", "dependency-ran"]);
  expect(packageJson.trustedDependencies).toEqual([]);
});

function packageWith(manifest: object, files: Record<string, string>): string {
  const folder = temporaryFolder();
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "new", version: "1.0.0", ...manifest }),
  );
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

describe("licences", () => {
  test("THIRD-PARTY.md is what `bun run licences` writes", async () => {
    const isCurrent = (await Bun.file("THIRD-PARTY.md").text()) === (await thirdPartyPage());
    expect(isCurrent, "run `bun run licences`, and read what changed").toBe(true);
  });

  test("a package with an allowed licence is listed with all its notices", () => {
    const files = { LICENSE: "Free for all \r\n", "CopyrightNotice.txt": "(c) Ada", "x.js": "no" };
    expect(readPackage(packageWith({ license: "MIT" }, files))).toEqual({
      name: "new",
      version: "1.0.0",
      licence: "MIT",
      text: "(c) Ada\n\nFree for all",
    });
  });

  test.each([
    ["GPL-3.0-only", { license: "GPL-3.0-only" }],
    ["MIT AND LGPL-2.1", { license: "MIT AND LGPL-2.1" }],
    ["SEE LICENSE IN LICENSE", { license: "SEE LICENSE IN LICENSE" }],
    ["unknown", {}],
  ])("a package with the licence %s is refused", (named, manifest) => {
    expect(() => readPackage(packageWith(manifest, { LICENSE: "text" }))).toThrow(
      `new 1.0.0 has the licence ${named}`,
    );
  });

  test("a package without the text of its licence is refused", () => {
    expect(() => readPackage(packageWith({ license: "MIT" }, {}))).toThrow("has no licence text");
  });
});

interface Workflow {
  readonly permissions: unknown;
  readonly jobs: Record<
    string,
    { readonly permissions?: unknown; readonly steps: { uses?: string; run?: string }[] }
  >;
}

/** Its steps, after a check that it may only read and pins its actions by commit. */
async function stepsOf(file: string) {
  const workflow = parse(await Bun.file(`.github/workflows/${file}`).text()) as Workflow;
  expect(workflow.permissions).toEqual({ contents: "read" });
  const jobs = Object.values(workflow.jobs);
  const steps = jobs.flatMap((job) => job.steps);
  const actions = steps.flatMap(({ uses }) => uses ?? []);
  expect(actions.length).toBeGreaterThan(0);
  for (const action of actions) expect(action).toMatch(/^actions\/[\w-]+@[0-9a-f]{40}$/);
  return {
    granted: jobs.map(({ permissions }) => permissions),
    commands: steps.flatMap(({ run }) => run ?? []),
  };
}

test("the gate's workflow may only read, pins its actions by commit, and calls only the gate", async () => {
  expect(await stepsOf("ci.yml")).toEqual({
    granted: [undefined],
    commands: ['sudo env "PATH=$PATH" AUDIT_REQUIRED=1 .ci/run'],
  });
});

test("the release's workflow only builds the release, signs it, and drafts it", async () => {
  expect(await stepsOf("release.yml")).toEqual({
    granted: [{ contents: "write", "id-token": "write", attestations: "write" }],
    commands: [
      `npx --yes bun@${packageJson.devDependencies["bun-types"]} run release`,
      expect.stringMatching(/^gh release create \S+ --draft --verify-tag --notes-file \S+ \S+$/),
    ],
  });
});
