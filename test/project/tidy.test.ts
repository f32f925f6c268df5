/** The house rules that no linter knows: which layer may import which, and how text files look. */
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { dirname, join, normalize } from "node:path";

/** Layer → the layers that it may import, besides itself. A layer is a folder of src/, or a part of one. */
const mayImport: Record<string, string> = {
  "main.ts": "cli commands",
  commands: "backups checks cli domain http lib notices ops send serve serve/config.ts store",
  cli: "backups domain http lib",
  serve: "backups checks console domain feed http intake lib notices ops serve/config.ts store",
  "serve/config.ts": "backups domain http lib notices",
  checks: "backups domain http lib ops serve/config.ts store",
  "console/server/console.worker.ts": "checks console domain http lib notices ops store",
  "console/server/thread.ts": "console domain http lib notices ops",
  console: "clients domain http lib notices",
  intake: "domain http lib",
  feed: "domain http lib",
  ops: "backups domain http lib",
  backups: "lib",
  notices: "domain http lib",
  send: "clients domain lib",
  store: "domain lib",
  http: "domain lib",
  domain: "lib/errors.ts lib/text",
  lib: "lib/errors.ts lib/text",
  "lib/errors.ts": "",
  "lib/text": "",
};

/** The longest first, so that a part is found before its folder. */
const layers = Object.keys(mayImport).toSorted((one, other) => other.length - one.length);

/** Packages that only one layer may know. */
const ownedPackages: Record<string, string> = {
  "bun:sqlite": "store",
  elysia: "console feed http intake",
  commander: "commands cli",
  "@bomb.sh/tab/commander": "commands",
};

const domainPackages = new Set([
  "@sinclair/typebox",
  "fastest-levenshtein",
  "node:net",
  "node:util",
  "ulid",
]);

interface Import {
  readonly file: string;
  readonly layer: string;
  readonly specifier: string;
}

async function imports(): Promise<Import[]> {
  const found: Import[] = [];
  for await (const file of new Glob("**/*.{ts,tsx}").scan("src")) {
    const text = await Bun.file(join("src", file)).text();
    for (const specifier of specifiersOf(text))
      found.push({ file, layer: layerOf(file), specifier });
  }
  return found;
}

/** Of `import`, `export … from`, `import type`, `import()` and `import("…")` in a type. */
function specifiersOf(text: string): string[] {
  const patterns = [/^(?:import|export)\b[^;]*?from "([^"]+)"/gm, /^import "([^"]+)"/gm];
  const dynamic = /\bimport\(\s*["'`]([^"'`]+)["'`]/g;
  return [...patterns, dynamic].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, specifier = ""]) => specifier),
  );
}

function layerOf(file: string): string {
  return layers.find((layer) => file === layer || file.startsWith(`${layer}/`)) ?? file;
}

function targetOf({ file, specifier }: Import): string {
  return normalize(join(dirname(file), specifier));
}

test("layers import only in the direction of the map", async () => {
  const wrong: string[] = [];
  for (const found of await imports()) {
    const { file, layer, specifier } = found;
    // Beside src/ lie files that are read as text, such as schema.sql.
    const target = targetOf(found).replace(/^\.\.\/(?=clients\/)/, "");
    if (!specifier.startsWith(".") || target.startsWith("..")) continue;
    const allowed = [layer, ...(mayImport[layer]?.split(" ") ?? [])];
    const [to] = [layerOf(target), target.split("/")[0] ?? ""].filter((one) =>
      allowed.includes(one),
    );
    if (to === undefined) wrong.push(`${file} imports ${specifier}`);
  }
  expect(wrong).toEqual([]);
});

test("no file imports itself through others, for types either", async () => {
  const all = await imports();
  const targets = Map.groupBy(all, ({ file }) => file);
  const finished = new Set<string>();
  const visit = (file: string, path: readonly string[]): readonly string[] | null => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (finished.has(file)) return null;
    finished.add(file);
    for (const found of targets.get(file) ?? []) {
      const circle = found.specifier.startsWith(".")
        ? visit(targetOf(found), [...path, file])
        : null;
      if (circle !== null) return circle;
    }
    return null;
  };
  expect([...targets.keys()].map((file) => visit(file, [])).filter(Boolean)).toEqual([]);
});

test("a folder has at most 15 files of code, and a file 300 lines", async () => {
  const folders: Record<string, number> = {};
  const wrong: string[] = [];
  for await (const file of new Glob("{src,test}/**/*.{ts,tsx}").scan()) {
    const folder = dirname(file);
    folders[folder] = (folders[folder] ?? 0) + 1;
    const lines = (await Bun.file(file).text()).split("\n").length - 1;
    if (lines > 300 && file.startsWith("src/")) wrong.push(`${file} has ${lines} lines`);
  }
  for (const [folder, count] of Object.entries(folders))
    if (count > 15) wrong.push(`${folder} has ${count} files`);
  expect(wrong).toEqual([]);
});

test("outside store/, the storage is reached through store/open.ts alone", async () => {
  const wrong = (await imports()).filter((found) => {
    if (found.layer === "store" || !found.specifier.startsWith(".")) return false;
    const target = targetOf(found);
    return layerOf(target) === "store" && target !== "store/open.ts";
  });
  expect(wrong).toEqual([]);
});

test("outside store/, nothing names SQLite's interface or its errors", async () => {
  const wrong: string[] = [];
  for await (const file of new Glob("**/*.{ts,tsx}").scan("src")) {
    if (layerOf(file) === "store") continue;
    const text = await Bun.file(join("src", file)).text();
    const [found] =
      /bun:sqlite|\bSQLite\w*Error\b|\bSQLITE_[A-Z]+|\bSqlite[A-Z]\w+/.exec(text) ?? [];
    if (found !== undefined) wrong.push(`${file} names ${found}`);
  }
  expect(wrong).toEqual([]);
});

test("a package that belongs to one layer is imported nowhere else", async () => {
  const wrong = (await imports()).filter(
    ({ layer, specifier }) => ownedPackages[specifier]?.split(" ").includes(layer) === false,
  );
  expect(wrong).toEqual([]);
});

test("the domain imports few packages", async () => {
  const wrong = (await imports()).filter(
    ({ layer, specifier }) =>
      layer === "domain" && !specifier.startsWith(".") && !domainPackages.has(specifier),
  );
  expect(wrong).toEqual([]);
});

test("text files keep the rules of .editorconfig", async () => {
  const files = [
    ...new Glob("*.{md,json,toml,ts,sql}").scanSync(),
    ...new Glob("{.ci,.github,bench,clients,deploy,docs,src,test}/**").scanSync({ dot: true }),
  ].filter((file) => !/(?:^|\/)(?:node_modules|__pycache__)\/|\.png$/.test(file));
  expect(files.length).toBeGreaterThan(400);
  const wrong: string[] = [];
  for (const file of files) {
    const text = await Bun.file(file).text();
    if (/\r|[ \t]$/m.test(text) || !text.endsWith("\n")) wrong.push(file);
  }
  expect(wrong).toEqual([]);
});
