/** `SECURITY.md` and `docs/asvs.md` are complete. `docs.test.ts` checks the paths in them. */
import { expect, test } from "bun:test";

const text = await Bun.file("SECURITY.md").text();
const rows = text.split("\n").filter((line) => /^\| (\*\*| ?\|)/.test(line));

function pathsIn(part: string): string[] {
  return [...part.matchAll(/`([\w./-]+)`/g)]
    .map(([, path = ""]) => path)
    .filter(
      (path) => /^(src|test|deploy|bench|\.ci)\//.test(path) || /\.(ts|sql|lock)$/.test(path),
    );
}

test("every threat has a defence and a test", () => {
  expect(rows.length).toBeGreaterThan(15);
  for (const row of rows) {
    const [, , , defence = "", tests = ""] = row.split("|");
    expect(pathsIn(defence), row).not.toEqual([]);
    expect(pathsIn(tests), row).not.toEqual([]);
    for (const path of pathsIn(tests)) expect(path).toMatch(/^test\/.*\.(test|contract)\.ts$/);
  }
});

/** `1.2.1–1.2.3` are three. */
function requirementsIn(cell: string): string[] {
  return cell.split(",").flatMap((part) => {
    const [first = "", last = first] = part.trim().split("–");
    const [chapter, section, from = ""] = first.split(".");
    const [, , to = ""] = last.split(".");
    const length = Number(to) - Number(from) + 1;
    return Array.from({ length }, (_, at) => `${chapter}.${section}.${Number(from) + at}`);
  });
}

test("the ASVS table has each of the 253 requirements of levels 1 and 2 once", async () => {
  const lines = (await Bun.file("docs/asvs.md").text()).split("\n");
  const cells = lines.flatMap((line) => /^\| (\d+\.\d+\.\d+[^|]*) \|/.exec(line)?.[1] ?? []);
  const requirements = cells.flatMap(requirementsIn);
  expect(new Set(requirements).size).toBe(253);
  expect(requirements).toHaveLength(253);
});
