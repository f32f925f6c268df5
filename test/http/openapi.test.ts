/** `GET /openapi.yaml` (SPEC.md 4.2): a document that linters, generators and this server agree on. */
import { expect, test } from "bun:test";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { type AnySchema, Ajv2020 } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { generateSource } from "oazapfts";
import { parse } from "yaml";
import { errorCatalogue } from "../../src/domain/errors.ts";
import { DESK_REQUESTS_MAX, KEY_REQUESTS_MAX, REQUESTS_MAX } from "../../src/feed/concurrency.ts";
import { BODY_BYTES_MAX, parseSignal } from "../../src/domain/signal/signal.ts";
import { apiDocument, feedDocument } from "../kit/openapi.ts";
import { appSharedByFile, onCleanup, query, signal, startTestApp } from "../kit/setup.ts";

const emptyApp = appSharedByFile();

const ROOT = resolve(import.meta.dir, "../..");

interface Document {
  readonly servers: unknown;
  readonly paths: Record<
    string,
    Record<string, { readonly responses: Record<string, { readonly $ref?: string }> }>
  >;
  readonly components: { readonly schemas: Record<string, { readonly properties: object }> };
}

const document = apiDocument as unknown as Document;

test("the document is served to anyone as YAML, with the address as bound", async () => {
  const { call, key, url } = emptyApp();
  for (const headers of [{}, { Authorization: "Bearer no" }, { "X-API-Key": key }]) {
    const answer = await call("/openapi.yaml", { headers });
    expect([answer.status, answer.headers.get("Content-Type")]).toEqual([200, "application/yaml"]);
    expect(answer.text).toStartWith("openapi: 3.1.0\n");
    expect(parse(answer.text)).toEqual({ ...apiDocument, servers: [{ url }] });
  }
});

test("its server is the public URL, and its ETag changes only with the document", async () => {
  const tags: string[] = [];
  for (const host of ["a", "a", "b"]) {
    const publicUrl = `https://${host}.desk-one.net/in`;
    const { app } = await startTestApp({ config: { publicUrl } });
    const response = await fetch(`http://127.0.0.1:${app.address.port}/openapi.yaml`);
    expect((parse(await response.text()) as Document).servers).toEqual([{ url: publicUrl }]);
    tags.push(response.headers.get("ETag") ?? "");
  }
  expect(tags[1]).toBe(tags[0] ?? "");
  expect(tags[2]).not.toBe(tags[0] ?? "");
});

test("HEAD has the headers of GET and no body", async () => {
  const { call } = emptyApp();
  const get = await call("/openapi.yaml");
  const head = await call("/openapi.yaml", { method: "HEAD" });
  expect([head.status, head.text]).toEqual([200, ""]);
  for (const name of ["Content-Type", "ETag", "Cache-Control"]) {
    expect(head.headers.get(name)).toBe(get.headers.get(name) ?? "missing");
  }
  expect(head.headers.get("Content-Length")).toBe(String(Buffer.byteLength(get.text)));
});

test("a client that has it already gets 304 without a body", async () => {
  const { call } = emptyApp();
  const tag = (await call("/openapi.yaml")).headers.get("ETag") ?? "";
  expect(tag).toMatch(/^"[^"]+"$/);
  const wants = {
    [tag]: 304,
    [`W/${tag}`]: 304,
    [`"other", ${tag}`]: 304,
    "*": 304,
    '"other"': 200,
  };
  for (const [input, want] of Object.entries(wants)) {
    for (const method of ["GET", "HEAD"]) {
      const headers = { "If-None-Match": input };
      const answer = await call("/openapi.yaml", { method, headers });
      expect([input, method, answer.status]).toEqual([input, method, want]);
      expect(answer.headers.get("ETag")).toBe(tag);
      expect(answer.text === "").toBe(want === 304 || method === "HEAD");
    }
  }
});

async function problemsOf(source: string): Promise<unknown[]> {
  const config = await createConfig({ extends: ["recommended"] });
  const problems = await lintFromString({ source, absoluteRef: "openapi.yaml", config });
  return problems.map(({ ruleId, location }) => [ruleId, location[0]?.pointer]);
}

test("a linter finds no error", async () => {
  const { text } = await emptyApp().call("/openapi.yaml");
  // OpenAPI has no place for the answer to an unknown path, so nothing refers to it.
  const unused = ["no-unused-components", "#/components/responses/not_found"];
  expect(await problemsOf(text)).toEqual([unused]);
  // The lines of a page are not one JSON text.
  const lines = ["Signal", "End"].map((name) => [unused[0], `#/components/schemas/${name}`]);
  expect(await problemsOf(JSON.stringify(feedDocument))).toEqual([...lines, unused]);
});

/** `test/project/reference.test.ts` compares their schemas and examples with the catalogue. */
test("every code of the catalogue is an answer of its status", () => {
  const { post } = document.paths["/v1/signals"] ?? {};
  const answers = Object.entries(post?.responses ?? {}).flatMap(([status, { $ref }]) =>
    $ref === undefined ? [] : [`${status} ${$ref}`],
  );
  const codes = Object.entries(errorCatalogue)
    // An unknown path is none of the operation's answers.
    .filter(([code]) => code !== "not_found")
    .map(([code, { status }]) => `${status} #/components/responses/${code}`);
  expect(answers.toSorted()).toEqual(codes.toSorted());
});

test("the limits in the texts are those of the program", () => {
  const limits = [`at most ${BODY_BYTES_MAX} bytes`, `larger than ${BODY_BYTES_MAX} bytes`];
  for (const limit of limits) expect(JSON.stringify(apiDocument)).toContain(limit);
  const requests = `${KEY_REQUESTS_MAX} per key, ${DESK_REQUESTS_MAX} for the keys of a desk together`;
  const { description } = feedDocument["info"] as { description: string };
  expect(description.replaceAll("\n", " ")).toContain(requests);
  expect(description).toContain(`and ${REQUESTS_MAX} in all`);
});

test("the server accepts exactly the bodies that fit the documented schema", () => {
  const schema = document.components.schemas["Signal"];
  const ajv = new Ajv2020({ strict: false, formats: { int64: true, double: true } });
  const isDocumented = ajv.compile(schema as unknown as AnySchema);
  const value = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.nat({ max: 600 }).map((length) => "😀".repeat(length)),
    fc.constantFrom("venue_1", "venue_4", "crypto", "stock", "open", "close", "long", "sell", ""),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.constantFrom<unknown>(null, true, [], {}, 0, 2 ** 53, 2 ** 53 - 1, -1, 1.5, 1e300),
    fc.dictionary(fc.string(), fc.jsonValue()),
  );
  const name = fc.constantFrom(...Object.keys(schema?.properties ?? {}), "note", "constructor");
  const changes = fc.dictionary(name, value, { maxKeys: 3 });
  const seen = { accepted: 0, refused: 0 };
  fc.assert(
    fc.property(
      changes,
      fc.option(fc.constantFrom(...Object.keys(signal)), { freq: 2 }),
      (changed, dropped) => {
        const members = Object.entries({ ...signal, ...changed }).filter(
          ([key]) => key !== dropped,
        );
        const body = JSON.stringify(Object.fromEntries(members));
        const isAccepted = accepts(body);
        seen[isAccepted ? "accepted" : "refused"] += 1;
        expect(isDocumented(JSON.parse(body))).toBe(isAccepted);
      },
    ),
    { numRuns: 1_000 },
  );
  expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(100);
});

function accepts(body: string): boolean {
  try {
    parseSignal(new TextEncoder().encode(body));
    return true;
  } catch {
    return false;
  }
}

interface Client {
  readonly defaults: { readonly baseUrl: string };
  readonly postSignal: (
    body: Record<string, unknown>,
    options: { headers: Record<string, string> },
  ) => Promise<{ status: number; data: Record<string, unknown> }>;
  readonly getOpenApi: () => Promise<{ status: number }>;
}

test("a generated client submits signals and knows the answers", async () => {
  const { url, key, call, dataDir } = emptyApp();
  const folder = await generateClient((await call("/openapi.yaml")).text);
  const client = (await import(join(folder, "client.ts"))) as Client;
  expect(client.defaults.baseUrl).toBe(url);

  const headers = { Authorization: `Bearer ${key}` };
  const body = { ...signal, client_signal_id: "a", metadata: { take_profit: 1 } };
  const stored = await client.postSignal(body, { headers });
  const { id } = stored.data;
  expect(stored).toMatchObject({
    status: 201,
    data: { id: expect.any(String), received_at: expect.any(Number), deduped: false },
  });
  expect(await client.postSignal(body, { headers: { "X-API-Key": key } })).toMatchObject({
    status: 200,
    data: { id, deduped: true },
  });
  expect(await client.postSignal(body, { headers: {} })).toMatchObject({ status: 401 });
  expect(await client.postSignal({ ...body, side: "up" }, { headers })).toMatchObject({
    status: 422,
    data: { fields: { side: "must be one of: open, close" } },
  });
  expect((await client.getOpenApi()).status).toBe(200);
  expect(query(dataDir, "SELECT id FROM signals")).toEqual([{ id }]);
});

test("the client in `clients/typescript` has the interface's types, under a user's compiler options", async () => {
  const folder = await generateClient(JSON.stringify(document));
  writeFileSync(join(folder, "types.ts"), typeCheck);
  expect(await compile(folder, "types.ts")).toBe("");
});

/** The generator's `any` is our `unknown`, and it does not know that `deduped` is false. `differs` comes from a header. */
const typeCheck = `
    import type { Duplicate, Signal, Stored } from "./client.ts";
    import type * as ours from "${join(ROOT, "clients/typescript/signalbox.ts")}";
    type Plain<T> = T extends object ? { [Name in keyof T]: T[Name] } : never;
    type Same<A, B> =
      (<T>() => T extends Plain<A> ? 1 : 2) extends (<T>() => T extends Plain<B> ? 1 : 2) ? true : false;
    type Sent = Omit<Signal, "metadata"> & { metadata?: Record<string, unknown> };
    export const sent: Same<Sent, ours.Signal> = true;
    export const names: Same<Record<keyof Signal, 1>, Record<keyof ours.Signal, 1>> = true;
    type Answer = ((Omit<Stored, "deduped"> & { deduped: false }) | Duplicate) & { differs: string[] };
    export const answer: Same<Answer, ours.Stored> = true;
  `;

/** Returns a folder inside the project, so that the client finds its runtime; removed after the test. */
async function generateClient(description: string): Promise<string> {
  const cache = join(ROOT, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "client-"));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "openapi.yaml"), description);
  writeFileSync(join(folder, "client.ts"), await generateSource(join(folder, "openapi.yaml")));
  return folder;
}

/** Returns what the compiler prints with a user's options: `strict`, without this project's finer ones. */
async function compile(folder: string, file: string): Promise<string> {
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: "ESNext",
    module: "Preserve",
    lib: ["ESNext", "DOM"],
    types: ["node"],
    allowImportingTsExtensions: true,
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: [file] }));
  const command = [join(ROOT, "node_modules", ".bin", "tsc"), "--pretty", "false", "-p", "."];
  const tsc = Bun.spawn(command, { cwd: folder, stdout: "pipe" });
  return await new Response(tsc.stdout).text();
}
