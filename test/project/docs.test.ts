/** The documentation against the program and the repository. */
import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { SignalBody } from "../../src/domain/signal/signal.ts";
import { apiDocument } from "../kit/openapi.ts";

const pages = await readPages();

async function readPages(): Promise<Map<string, string>> {
  const files = ["*.md", "{clients,docs,deploy,bench}/*.md"].flatMap((at) => [
    ...new Glob(at).scanSync(),
  ]);
  const texts = await Promise.all(files.map((file) => Bun.file(file).text()));
  return new Map(files.map((file, index) => [file, texts[index] ?? ""]));
}

function page(file: string): string {
  return pages.get(file) ?? "";
}

/** Rows of all tables, without their heads. `\|` is a bar within a cell. */
function rowsOf(text: string): string[][] {
  return text
    .split("\n")
    .filter((line, at, lines) => line.startsWith("|") && lines[at - 1]?.startsWith("|"))
    .filter((line) => !/^\|( ?:?-+:? ?\|)+$/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
}

/** What a text has in backquotes, blocks of code aside. */
function codesIn(text = ""): string[] {
  const prose = text.replaceAll(/^ *```[^]*?^ *```$/gm, "");
  return [...prose.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
}

describe("every page", () => {
  test("in docs/ begins with a sentence that says what it is for, and is linked from the README", () => {
    const docs = [...pages.keys()].filter((file) => file.startsWith("docs/"));
    expect(docs.length).toBeGreaterThan(9);
    for (const file of docs) {
      expect(page(file), file).toMatch(/^# .+\n\nThis page /);
      expect(page("README.md")).toContain(`](${file})`);
    }
  });

  test("links to files and headings that exist", () => {
    const links = [...pages].flatMap(([file, text]) =>
      [...text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, target = ""]) => ({
        file,
        target,
      })),
    );
    expect(links.length).toBeGreaterThan(50);
    const broken = links.filter(({ file, target }) => {
      const [path = "", heading] = target.split("#");
      const to = path === "" ? file : join(dirname(file), path);
      return !existsSync(to) || (heading !== undefined && !headingsOf(to).includes(heading));
    });
    expect(broken).toEqual([]);
  });

  test("gives no command a key as an argument, which every user of the machine can read", () => {
    const withKey = /(?:-H|--header)[ =]?["']?(?:Authorization|X-API-Key)/i;
    expect([...pages].filter(([, text]) => withKey.test(text)).map(([file]) => file)).toEqual([]);
  });

  test("names files of this repository that exist", () => {
    const named = [...pages].flatMap(([file, text]) =>
      codesIn(text)
        .filter((code) => /^(src|test|clients|docs|deploy|bench|\.ci)\/[\w./-]*$/.test(code))
        .map((path) => ({ file, path })),
    );
    expect(named.length).toBeGreaterThan(100);
    expect(named.filter(({ path }) => !existsSync(path))).toEqual([]);
  });
});

test("every `bun run` command of the pages is a script of package.json", async () => {
  const { scripts } = (await Bun.file("package.json").json()) as { scripts: object };
  const names = [...pages.values()].flatMap((text) =>
    [...text.matchAll(/\bbun(?:@[\d.]+)? run ([a-z:]+)/g)].map(([, name = ""]) => name),
  );
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
});

/** As the anchors of a page are made on GitHub. */
function headingsOf(file: string): string[] {
  return [...page(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}

test("the README has at most 250 lines, and shows how to install before it uses the command", () => {
  const lines = page("README.md").split("\n");
  expect(lines.length).toBeLessThanOrEqual(251);
  const installed = lines.findIndex((line) => line.includes("/usr/local/bin/"));
  const used = lines.findIndex((line) => /^signalbox |\(signalbox /.test(line));
  expect(installed).toBeGreaterThan(0);
  expect(used).toBeGreaterThan(installed);
});

describe("the API", () => {
  const { schemas, responses } = apiDocument["components"] as {
    schemas: Record<string, { properties: object }>;
    responses: Record<string, { headers: object }>;
  };
  const { post } = (apiDocument["paths"] as Record<string, Operations>)[
    "/v1/signals"
  ] as Operations;

  interface Operations {
    readonly post: { readonly responses: Record<string, { $ref?: string; headers?: object }> };
  }

  test.each(["README.md", "docs/api.md"])(
    "%s lists each field, its type and its values",
    (file) => {
      const rows = rowsOf(page(file)).filter(
        (row) => row.length === 4 && row[2]?.match(/^(yes|no)$/),
      );
      const described = rows.map(([name = "", type, required, rule]) => [
        ...codesIn(name),
        type,
        required,
        codesIn(rule).filter((code) => /^[a-z][a-z_0-9]+$/.test(code)),
      ]);
      const required: readonly string[] = SignalBody.required ?? [];
      const defined = Object.entries(SignalBody.properties).map(([name, schema]) => [
        name,
        schema.type as string,
        required.includes(name) ? "yes" : "no",
        (schema as { enum?: string[] }).enum ?? [],
      ]);
      expect(described).toEqual(defined);
    },
  );

  /** Status and code → members of the body. `openapi.yaml` has 404 for unknown paths, which are no operation. */
  function definedResponses(): Record<string, string[]> {
    const errors = Object.keys(responses).map((code) => [
      `${statusOf(code)} \`${code}\``,
      Object.keys(schemas[code]?.properties ?? {}),
    ]);
    const results = { 201: "Stored", 200: "Duplicate" };
    const others = Object.entries(results).map(([status, schema]) => [
      status,
      Object.keys(schemas[schema]?.properties ?? {}),
    ]);
    return Object.fromEntries([...others, ...errors]) as Record<string, string[]>;
  }

  function statusOf(code: string): string {
    const found = Object.entries(post.responses).find(([, { $ref }]) => $ref?.endsWith(`/${code}`));
    return found?.[0] ?? "404";
  }

  test.each(["README.md", "docs/api.md"])("%s lists each status, its code and its body", (file) => {
    const rows = rowsOf(page(file)).filter(([status = ""]) => /^[2-5]\d\d( `\w+`)?$/.test(status));
    const described = rows.map(([status, body]) => [
      status,
      codesIn(body).map((code) => code.split(":")[0]),
    ]);
    // "The HTTP parser answers itself" has another table.
    expect(Object.fromEntries(described)).toEqual(definedResponses());
  });

  test("docs/api.md lists the headers of each response", () => {
    const rows = rowsOf(page("docs/api.md")).filter(([status = ""]) => /^[2-5]\d\d\b/.test(status));
    for (const [status = "", , headers] of rows) {
      const code = codesIn(status)[0];
      const defined = code === undefined ? post.responses[status] : responses[code];
      const names = Object.keys(defined?.headers ?? {}).filter((name) => name !== "X-Request-Id");
      expect([status, codesIn(headers)]).toEqual([status, names]);
    }
  });

  test("docs/api.md gives the order of checks that openapi.yaml gives", () => {
    const [, order = ""] = page("docs/api.md").split("## Order of checks");
    const listed = [...(order.split("\n## ")[0] ?? "").matchAll(/^\d\. \w.*$/gm)].flatMap(
      ([line]) => line.match(/\b[45]\d\d\b/g) ?? [],
    );
    const { description } = apiDocument["info"] as { description: string };
    const paragraph = description.split("\n\n").find((text) => /order of checks/i.test(text));
    expect(listed).toEqual(paragraph?.match(/\b[45]\d\d\b/g) ?? []);
    expect(listed.length).toBeGreaterThan(8);
  });
});

describe("the map of docs/architecture.md", () => {
  const [, map = ""] = page("docs/architecture.md").split("```");
  const entries = [...map.matchAll(/^(\S+) {2,}\S/gm)].map(([, path = ""]) => path);
  const divided = [...map.matchAll(/^(\S+) .*\ba folder per\b/gm)].map(([, path = ""]) => path);

  test("names files and folders that exist", () => {
    expect(entries.length).toBeGreaterThan(20);
    for (const entry of entries) {
      expect(existsSync(entry), entry).toBe(true);
      expect(statSync(entry).isDirectory(), entry).toBe(entry.endsWith("/"));
    }
  });

  test("has every folder of src/ that has files, or the folder that is divided into it, and every file directly in src/", () => {
    const files = [...new Glob("src/**").scanSync()];
    const folders = new Set(files.map((file) => `${dirname(file)}/`));
    folders.delete("src/");
    const missing = [...folders].filter(
      (folder) => !entries.includes(folder) && !divided.includes(`${dirname(folder)}/`),
    );
    expect(missing).toEqual([]);
    const programs = files.filter((file) => dirname(file) === "src" && !file.endsWith(".d.ts"));
    expect(programs.filter((file) => !entries.includes(file))).toEqual([]);
  });
});

test("docs/architecture.md names functions that are in the files beside them", async () => {
  const named = [...page("docs/architecture.md").matchAll(/`(\w+)` \(`(src\/[^`]+)`\)/g)];
  expect(named.length).toBeGreaterThan(8);
  for (const [, name = "", file = ""] of named) {
    const isThere = new RegExp(`\\b${name}\\b`).test(await Bun.file(file).text());
    expect([name, file, isThere]).toEqual([name, file, true]);
  }
});

describe("the clients", () => {
  const examples = ["curl/send.sh", "python/send.py", "typescript/send.ts"];

  const clients = [
    "python/signalbox.py",
    "typescript/signalbox.ts",
    "python/feed.py",
    "typescript/feed.ts",
  ];

  test.each([...examples, ...clients])(
    "%s is short and linked from the README and from clients/README.md",
    async (name) => {
      expect(page("README.md")).toContain(`](clients/${name})`);
      expect(page("clients/README.md")).toContain(`](${name})`);
      const lines = (await Bun.file(`clients/${name}`).text()).split("\n");
      expect(lines.length).toBeLessThan(examples.includes(name) ? 41 : 285);
    },
  );

  test.each([
    ["ts", "typescript/signalbox.ts"],
    ["py", "python/signalbox.py"],
  ])("the README's lines of %s are those in the head of clients/%s", async (language, name) => {
    const [, code = ""] = page("README.md").split(`\n\`\`\`${language}\n`);
    const lines = (code.split("\n```")[0] ?? "").split("\n");
    expect(lines.length).toBe(2);
    const client = await Bun.file(`clients/${name}`).text();
    for (const line of lines) expect(client).toContain(`    ${line}\n`);
  });
});

test("comments name files that exist", async () => {
  const files = ["src", "test", "bench", "deploy", ".ci"].flatMap((folder) => [
    ...new Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ dot: true }),
  ]);
  const broken: string[] = [];
  for (const file of files) {
    const comments =
      (await Bun.file(file).text()).match(/^\s*(?:\/\/|\/?\*).*$|\/\*\*.*\*\//gm) ?? [];
    for (const path of codesIn(comments.join("\n"))) {
      if (!/^[\w./-]*\w\.(?:tsx?|sql|md|yaml)$/.test(path) || isOurs(path, file)) continue;
      broken.push(`${file}: ${path}`);
    }
  }
  expect(broken).toEqual([]);
});

/** Written from the project's folder, from src/, or from the folder of the file. Two are documents without a file here. */
function isOurs(path: string, from: string): boolean {
  const documents = ["SPEC.md", "openapi.yaml"];
  return (
    documents.includes(path) || [".", "src", dirname(from)].some((at) => existsSync(join(at, path)))
  );
}
