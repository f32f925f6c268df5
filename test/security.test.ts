/** `SECURITY.md` against the repository: what it points to is there. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";

const text = await Bun.file("SECURITY.md").text();
const rows = text.split("\n").filter((line) => /^\| (\*\*| ?\|)/.test(line));

function pathsIn(part: string): string[] {
  return [...part.matchAll(/`([\w./-]+)`/g)]
    .map(([, path = ""]) => path)
    .filter(
      (path) => /^(src|test|deploy|bench|\.ci)\//.test(path) || /\.(ts|sql|lock)$/.test(path),
    );
}

test("every file that it names exists", () => {
  const paths = pathsIn(text);
  expect(paths.length).toBeGreaterThan(40);
  expect(paths.filter((path) => !existsSync(path))).toEqual([]);
});

test("every threat has a defence and a test", () => {
  expect(rows.length).toBeGreaterThan(15);
  for (const row of rows) {
    const [, , , defence = "", tests = ""] = row.split("|");
    expect(pathsIn(defence), row).not.toEqual([]);
    expect(pathsIn(tests), row).not.toEqual([]);
    for (const path of pathsIn(tests)) expect(path).toMatch(/^test\/.*\.test\.ts$/);
  }
});

/** `1.2.1–1.2.3` is three. */
function requirementsIn(cell: string): string[] {
  return cell.split(",").flatMap((part) => {
    const [first = "", last = first] = part.trim().split("–");
    const [chapter, section, from = ""] = first.split(".");
    const [, , to = ""] = last.split(".");
    const length = Number(to) - Number(from) + 1;
    return Array.from({ length }, (_, at) => `${chapter}.${section}.${Number(from) + at}`);
  });
}

describe("the ASVS table", () => {
  test("has each of the 253 requirements of levels 1 and 2 once", async () => {
    const lines = (await Bun.file("docs/asvs.md").text()).split("\n");
    const cells = lines.flatMap((line) => /^\| (\d+\.\d+\.\d+[^|]*) \|/.exec(line)?.[1] ?? []);
    const requirements = cells.flatMap(requirementsIn);
    expect(new Set(requirements).size).toBe(253);
    expect(requirements).toHaveLength(253);
  });

  test("names files that exist", async () => {
    const paths = pathsIn(await Bun.file("docs/asvs.md").text());
    expect(paths.length).toBeGreaterThan(10);
    expect(paths.filter((path) => !existsSync(path))).toEqual([]);
  });
});

test("no package runs a script of its own when it is installed", async () => {
  // Without this list Bun trusts one of its own, with hundreds of names.
  const packageJson = (await Bun.file("package.json").json()) as Record<string, unknown>;
  expect(packageJson["trustedDependencies"]).toEqual([]);
});
