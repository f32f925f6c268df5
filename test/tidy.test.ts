/** The house rules that no linter knows: which layer may import which, and how text files look. */
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { dirname, join, normalize } from "node:path";

/** Layer → the layers that it may import, besides itself. A layer is a folder of src/, or a file in it. */
const mayImport: Record<string, string> = {
  "main.ts": "cli.ts",
  "cli.ts": "commands config.ts domain output.ts version.ts",
  commands:
    "app.ts config.ts api domain files.ts log.ts net ops output.ts priority.ts send store version.ts",
  "app.ts": "certificates.ts config.ts console domain feed interfaces.ts net ops store",
  "interfaces.ts": "api certificates.ts config.ts console domain feed net ops version.ts",
  "console.worker.ts": "console domain log.ts net store",
  console: "domain net workers.ts",
  "certificates.ts": "config.ts domain net",
  "config.ts": "domain net ops",
  api: "domain net",
  feed: "domain net",
  ops: "domain net priority.ts",
  store: "domain files.ts output.ts workers.ts",
  net: "domain files.ts libc.ts version.ts",
  send: "domain files.ts",
  domain: "",
  "files.ts": "",
  "libc.ts": "",
  "log.ts": "domain",
  "output.ts": "domain libc.ts",
  "priority.ts": "",
  "version.ts": "",
  "workers.ts": "",
};

/** Packages that only one layer may know. */
const ownedPackages: Record<string, string> = {
  "bun:sqlite": "store",
  elysia: "api console feed net",
  commander: "commands cli.ts",
  "@bomb.sh/tab/commander": "commands",
};

const domainPackages = new Set(["@sinclair/typebox", "fastest-levenshtein", "node:util", "ulid"]);

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
  return file.split("/")[0] ?? file;
}

test("layers import only in the direction of the map", async () => {
  const wrong: string[] = [];
  for (const { file, layer, specifier } of await imports()) {
    if (!specifier.startsWith(".")) continue;
    const target = layerOf(normalize(join(dirname(file), specifier)));
    if (target === ".." || target === layer) continue;
    if (mayImport[layer]?.split(" ").includes(target) !== true)
      wrong.push(`${file} imports ${specifier}`);
  }
  expect(wrong).toEqual([]);
});

test("outside store/, the storage is reached through store/open.ts alone", async () => {
  const wrong = (await imports()).filter(({ file, layer, specifier }) => {
    if (layer === "store" || !specifier.startsWith(".")) return false;
    const target = normalize(join(dirname(file), specifier));
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
