/**
 * `bun run licences` writes `THIRD-PARTY.md`: everything in the executable that others wrote, with its
 * licences. Fails on a licence that is not in {@link allowed}.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { bundle } from "../build.ts";

const PAGE = "THIRD-PARTY.md";

/** SPDX names of licences that ask for no more than their text and notices, which the page has. */
const allowed = new Set(["0BSD", "Apache-2.0", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "Unlicense"]);

/** Packages that declare a licence but publish no text of it. The Unlicense of `postgres` asks for none. */
const withoutText = new Set(["@bomb.sh/tab", "postgres", "standardwebhooks"]);

export interface Package {
  readonly name: string;
  readonly version: string;
  readonly licence: string;
  readonly text: string;
}

/** The packages with at least one file in the executable, by name and version. */
export async function bundledPackages(): Promise<Package[]> {
  const { metafile } = await Bun.build({ ...bundle, target: "bun", metafile: true });
  const folders = Object.keys(metafile?.inputs ?? {}).flatMap(
    // The last node_modules of the path is the innermost: two versions of a package are two folders.
    (file) => /^.*\bnode_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? [],
  );
  return [...new Set(folders)].map(readPackage).toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
}

const idOf = ({ name, version }: Package): string => `${name} ${version}`;

export function readPackage(folder: string): Package {
  const {
    name,
    version,
    license: declared,
  } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<
    string,
    string | undefined
  >;
  if (name === undefined || version === undefined) throw new Error(`${folder} has no name`);
  const licence = chooseLicence(declared ?? "");
  if (licence === undefined) {
    throw new Error(
      `${name} ${version} has the licence ${declared ?? "unknown"}, which .ci/licences.ts does not allow: use another package.`,
    );
  }
  const files = readdirSync(folder).filter((file) =>
    /^(licen[cs]e|copying|copyright|notice)/i.test(file),
  );
  const texts = files.toSorted().map((file) => readFileSync(join(folder, file), "utf8"));
  if (texts.length === 0) texts.push(...licenceInReadme(folder));
  if (texts.length === 0 && !withoutText.has(name)) {
    throw new Error(
      `${name} ${version} has no licence text: if its repository has none either, add it to withoutText in .ci/licences.ts.`,
    );
  }
  const text = texts
    .join("\n\n")
    .replaceAll(/[ \t\r]+$/gm, "")
    .trim();
  return { name, version, licence, text: text || "The package has no licence text." };
}

/** Some packages have their licence's text only in the last section of their README. */
function licenceInReadme(folder: string): string[] {
  const readme = readdirSync(folder).find((file) => /^readme\.md$/i.test(file));
  if (readme === undefined) return [];
  const text = readFileSync(join(folder, readme), "utf8");
  const [, section] = /^(?:#+ )?Licen[cs]e\n[-=]*\n*([\s\S]*Copyright[\s\S]*)$/m.exec(text) ?? [];
  return section === undefined ? [] : [section];
}

/** Returns the first allowed licence of a choice such as `(BSD-3-Clause OR GPL-2.0)`. */
function chooseLicence(expression: string): string | undefined {
  const choices = expression.replace(/^\((.*)\)$/, "$1").split(" OR ");
  return choices.find((licence) => allowed.has(licence));
}

/** The table of what Bun links, from the documentation of the version that is used here. */
function bunLibraries(): { version: string; table: string } {
  const folder = "node_modules/bun-types";
  const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8")) as Package;
  const page = readFileSync(`${folder}/docs/project/license.mdx`, "utf8");
  const [, table] = /^## Linked libraries$[^|]*((?:^\|.*\n)+)/m.exec(page) ?? [];
  if (table === undefined) throw new Error(`${folder} no longer lists what Bun links`);
  return {
    version,
    table: table
      .replaceAll(/ {2,}\|/g, " |")
      .replaceAll(/-{4,}/g, "---")
      .trim(),
  };
}

export async function thirdPartyPage(): Promise<string> {
  const packages = await bundledPackages();
  const bun = bunLibraries();
  const rows = packages.map(
    ({ name, version, licence }) => `| ${name} | ${version} | ${licence} |`,
  );
  const texts = packages.map((one) => `### ${idOf(one)}\n\n\`\`\`text\n${one.text}\n\`\`\`\n`);
  return `# Third-party software

This page lists what the executable contains besides Signalbox itself, with the licences. If you pass the
executable on, pass on this page and [LICENSES/](LICENSES) with it. \`bun run licences\` writes the page; do not edit it.

## Packages

| Package | Version | Licence |
| --- | --- | --- |
${rows.join("\n")}

## Bun

The executable contains [Bun](https://bun.com) ${bun.version}, which is under the MIT licence and links the libraries below, SQLite among
them. The table is Bun's own. Bun comes without the notices of these libraries: take them from the addresses in the table when you
pass the executable on.

Bun also links [JavaScriptCore](https://github.com/oven-sh/WebKit), which is under the
[LGPL 2.0](LICENSES/LGPL-2.0.txt); TinyCC is under the [LGPL 2.1](LICENSES/LGPL-2.1.txt). To use changed versions of them, build
[Bun](https://github.com/oven-sh/bun) with the changes, then Signalbox with that Bun: \`bun run build\`.

${bun.table}

## Licence texts

${texts.join("\n")}`;
}

if (import.meta.main) {
  await Bun.write(PAGE, await thirdPartyPage());
  process.stderr.write(`wrote ${PAGE}\n`);
}
