/** The package's `copyright`, in Debian's format (https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/). */
import { readFileSync } from "node:fs";
import { bundledPackages, type Package } from "../licences.ts";

/** Debian's names of licences, where they differ from SPDX. */
const names: Readonly<Record<string, string>> = { MIT: "Expat", "BSD-3-Clause": "BSD-3-clause" };

/** Needs the packages installed. */
export async function copyrightFile(): Promise<string> {
  const own = readFileSync("LICENSE", "utf8");
  const packages = await bundledPackages();
  const licences = new Set(["Expat", ...packages.map(({ licence }) => names[licence] ?? licence)]);
  const authors = packages.map(({ name }) => `the authors of ${name}`);
  const texts = packages.map((one) => `${one.name} ${one.version}:\n\n${textOf(one)}\n`);
  const [, ownText = ""] = own.split(/^Copyright .*\n/m);
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: signalbox

Files: *
Copyright: ${/^Copyright \(c\) (.*)$/m.exec(own)?.[1]}
License: Expat
${indented(ownText)}

Files: usr/bin/signalbox
Copyright:
${indented(["The Signalbox authors", "the authors of Bun", ...authors].join("\n"))}
License: ${[...licences].toSorted().join(" and ")}
${indented(texts.join("\n"))}
Comment: Bun, which is under the Expat licence, links the libraries that THIRD-PARTY.md in this folder lists.
 JavaScriptCore, one of them, is under the LGPL 2.0, and TinyCC under the LGPL 2.1: LICENSES in this folder has both.
`;
}

/** Debian has long licences once for all packages, and refuses their text here. */
function textOf({ licence, text }: Package): string {
  if (!/Apache License|GNU General Public License/.test(text)) return text;
  const common = `On Debian, its text is in /usr/share/common-licenses/${licence}.`;
  return `${licence}: THIRD-PARTY.md in this folder has its notices. ${licence === "Apache-2.0" ? common : ""}`.trim();
}

/** A field goes on in lines that begin with a space; an empty one has a dot. */
function indented(text: string): string {
  const lines = text.trim().split("\n");
  return lines.map((line) => (line.trim() === "" ? " ." : ` ${line}`)).join("\n");
}
