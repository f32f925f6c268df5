/** The notes of a release: which file is for whom, and what changed. */
import { readFileSync } from "node:fs";
import { debianVersion } from "./debian.ts";
import type { Source } from "./source.ts";
import type { Target } from "./targets.ts";

export function releaseNotes(
  version: string,
  { commit, isClean }: Source,
  targets: readonly Target[],
): string {
  const rows = targets.flatMap(({ name, debian, needs, state }) => {
    const row = `| ${needs} | ${state} |`;
    const archive = `| \`signalbox-${version}-${name}.tar.gz\` ${row}`;
    if (debian === null) return [archive];
    return [`| \`signalbox_${debianVersion(version)}_${debian}.deb\` ${row}`, archive];
  });
  return `# Signalbox ${version}

Built from commit \`${commit}\`${isClean ? "" : " **with changes that are not committed**"} with Bun ${Bun.version}.

| File | Needs at least | |
| --- | --- | --- |
${rows.join("\n")}

\`SHA256SUMS\` has the checksums, \`signalbox-${version}.cdx.json\` the packages in the executable (CycloneDX).
\`docs/install.md\` says how to install and upgrade, \`SECURITY.md\` how to verify a release.

${changesOf(version)}`;
}

/** The version's part of CHANGELOG.md. */
function changesOf(version: string): string {
  const parts = readFileSync("CHANGELOG.md", "utf8").split(/^(?=## )/m);
  const part = parts.find((text) => text.startsWith(`## ${version} `));
  if (part === undefined) throw new Error(`CHANGELOG.md has no part about ${version}: write it.`);
  return part;
}
