/** `GET /openapi.yaml` (SPEC.md 4.2): a document that linters, generators and this server agree on. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { type AnySchema, Ajv2020 } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { generateSource } from "oazapfts";
import { parse } from "yaml";
import { errorCatalogue } from "../src/domain/errors.ts";
import { generateKey, KEY_PATTERN } from "../src/domain/key.ts";
import { BODY_BYTES_MAX, parseSignal } from "../src/domain/signal.ts";
import { openApiDocument } from "../src/api/openapi.ts";
import { onCleanup, query, signal, startTestApp, type TestApp } from "./_setup.ts";

setDefaultTimeout(60_000);

const ROOT = resolve(import.meta.dir, "..");

interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: {
    readonly schemas: Record<string, Schema>;
    readonly responses: Record<string, { headers: Record<string, unknown> }>;
    readonly headers: Record<string, { readonly schema: unknown }>;
    readonly securitySchemes: Record<string, Record<string, string>>;
  };
}

interface Operation {
  readonly security: readonly Record<string, unknown>[];
  readonly responses: Record<string, { $ref?: string; headers?: Record<string, unknown> }>;
  readonly requestBody?: { readonly description: string };
}

interface Schema {
  readonly type: string;
  readonly required: readonly string[];
  readonly properties: Record<string, Record<string, unknown>>;
  readonly additionalProperties: boolean;
}

async function served({ call }: TestApp): Promise<Document> {
  return parse((await call("/openapi.yaml")).text) as Document;
}

test("the document is served as YAML, in OpenAPI 3.1, to anybody", async () => {
  const app = await startTestApp();
  for (const headers of [{}, { Authorization: "Bearer no" }, { "X-API-Key": app.key }]) {
    const { status, headers: answered, text } = await app.call("/openapi.yaml", { headers });
    expect([status, answered.get("Content-Type")]).toEqual([200, "application/yaml"]);
    expect(text).toStartWith("openapi: 3.1.0\n");
  }
  const document = await served(app);
  expect(document).toEqual(openApiDocument(app.url) as unknown as Document);
  expect(document.openapi).toBe("3.1.0");
});

test("its server is the address as bound, or the public one", async () => {
  const plain = await startTestApp();
  expect((await served(plain)).servers).toEqual([{ url: plain.url }]);
  const publicUrl = "https://signals.desk-one.net/in";
  const named = await startTestApp({ config: { publicUrl } });
  const { text } = await fetchFrom(named, "/openapi.yaml");
  expect((parse(text) as Document).servers).toEqual([{ url: publicUrl }]);
});

test("HEAD has the headers of GET, and no body", async () => {
  const { call } = await startTestApp();
  const get = await call("/openapi.yaml");
  const head = await call("/openapi.yaml", { method: "HEAD" });
  expect([head.status, head.text]).toEqual([200, ""]);
  for (const name of ["Content-Type", "ETag", "Cache-Control"]) {
    expect(head.headers.get(name)).toBe(get.headers.get(name) ?? "missing");
  }
  expect(head.headers.get("Content-Length")).toBe(String(Buffer.byteLength(get.text)));
});

test("who has it already gets 304 without a body", async () => {
  const { call } = await startTestApp();
  const tag = (await call("/openapi.yaml")).headers.get("ETag") ?? "";
  expect(tag).toMatch(/^"[^"]+"$/);
  const cases = [
    { input: tag, want: 304 },
    { input: `W/${tag}`, want: 304 },
    { input: `"other", ${tag}`, want: 304 },
    { input: "*", want: 304 },
    { input: '"other"', want: 200 },
    { input: tag.slice(1, -1), want: 200 },
    { input: "", want: 200 },
  ];
  for (const { input, want } of cases) {
    for (const method of ["GET", "HEAD"]) {
      const headers = { "If-None-Match": input };
      const answer = await call("/openapi.yaml", { method, headers });
      expect([input, method, answer.status]).toEqual([input, method, want]);
      expect(answer.headers.get("ETag")).toBe(tag);
      expect(answer.text === "").toBe(want === 304 || method === "HEAD");
    }
  }
});

test("the tag is the same after a restart, and another for another document", async () => {
  const publicUrl = "https://a.desk-one.net";
  const tags: (string | null)[] = [];
  for (const url of [publicUrl, publicUrl, "https://b.desk-one.net"]) {
    const app = await startTestApp({ config: { publicUrl: url } });
    tags.push((await fetchFrom(app, "/openapi.yaml")).headers.get("ETag"));
  }
  expect(tags[1]).toBe(tags[0] ?? null);
  expect(tags[2]).not.toBe(tags[0] ?? null);
});

test("a linter finds no error, and the one warning that the format leaves no way round", async () => {
  const { text } = await (await startTestApp()).call("/openapi.yaml");
  const config = await createConfig({ extends: ["recommended"] });
  const problems = await lintFromString({ source: text, absoluteRef: "openapi.yaml", config });
  expect(problems.map(({ ruleId, location }) => [ruleId, location[0]?.pointer])).toEqual([
    // OpenAPI has no place for the answer to a path that there is not, so nothing refers to it.
    ["no-unused-components", "#/components/responses/not_found"],
  ]);
});

test("the fields, their lists and limits are the specification's", () => {
  const { Signal } = (openApiDocument("http://a") as unknown as Document).components.schemas;
  expect(Signal?.required).toEqual(["source", "type", "symbol", "side"]);
  expect(Signal?.additionalProperties).toBe(false);
  const facts = Object.entries(Signal?.properties ?? {}).map(([name, property]) => {
    const { description: _, examples: __, ...rest } = property;
    return [name, rest] as const;
  });
  const pattern = "^[^\\u0000-\\u001F\\u007F-\\u009F]*$";
  expect(Object.fromEntries(facts)).toEqual({
    source: { type: "string", enum: ["venue_1", "venue_2", "venue_3"] },
    type: { type: "string", enum: ["prediction_market", "crypto", "stock"] },
    symbol: { type: "string", minLength: 1, maxLength: 512, pattern },
    side: { type: "string", enum: ["open", "close"] },
    direction: { type: "string", enum: ["long", "short", "buy", "sell"] },
    price: { type: "number", format: "double" },
    quantity: { type: "number", format: "double" },
    signal_time: { type: "integer", format: "int64", minimum: 0, maximum: 2 ** 53 - 1 },
    client_signal_id: { type: "string", minLength: 1, maxLength: 255, pattern },
    metadata: { type: "object", additionalProperties: true },
  });
  const names =
    "source type symbol side direction price quantity signal_time client_signal_id metadata";
  expect(facts.map(([name]) => name).join(" ")).toBe(names);
});

test("every code of the catalogue is documented with its status, body and headers", () => {
  const document = openApiDocument("http://a") as unknown as Document;
  const { schemas, responses } = document.components;
  const post = document.paths["/v1/signals"]?.["post"];
  for (const [code, { status, message }] of Object.entries(errorCatalogue)) {
    const keys = Object.keys(schemas[code]?.properties ?? {});
    const rest = code === "validation_failed" ? ["fields"] : message === null ? [] : ["message"];
    expect([code, keys]).toEqual([code, ["error", ...rest]]);
    expect(schemas[code]?.required).toEqual(keys);
    expect(schemas[code]?.properties["error"]).toEqual({ type: "string", const: code });
    expect(Object.keys(responses[code]?.headers ?? {})).toContain("X-Request-Id");
    const reference = post?.responses[status]?.$ref;
    // An unknown path is none of the operation's answers.
    if (code === "not_found") expect(reference).toBeUndefined();
    else expect(reference).toBe(`#/components/responses/${code}`);
  }
  const statuses = Object.values(errorCatalogue).map(({ status }) => status);
  const documented = Object.keys(post?.responses ?? {}).map(Number);
  expect(documented.toSorted((a, b) => a - b)).toEqual(
    [200, 201, ...statuses.filter((status) => status !== 404)].toSorted((a, b) => a - b),
  );
  const special = {
    unauthorized: "WWW-Authenticate",
    method_not_allowed: "Allow",
    rate_limited: "Retry-After",
    unavailable: "Retry-After",
  };
  for (const [code, name] of Object.entries(special)) {
    expect(Object.keys(responses[code]?.headers ?? {})).toContain(name);
  }
});

test("Retry-After is documented as whole seconds, at least 1", () => {
  const { headers } = (openApiDocument("http://a") as unknown as Document).components;
  expect(headers["RetryAfter"]?.schema).toEqual({ type: "integer", minimum: 1 });
});

test("both ways to send a key are documented, and the description needs none", () => {
  const { paths, components } = openApiDocument("http://a") as unknown as Document;
  expect(paths["/v1/signals"]?.["post"]?.security).toEqual([{ bearer: [] }, { apiKey: [] }]);
  expect(paths["/openapi.yaml"]?.["get"]?.security).toEqual([]);
  expect(components.securitySchemes).toMatchObject({
    bearer: { type: "http", scheme: "bearer" },
    apiKey: { type: "apiKey", in: "header", name: "X-API-Key" },
  });
  expect(components.securitySchemes["bearer"]?.["description"]).toContain(KEY_PATTERN);
  expect(generateKey()).toMatch(/^sbk_[0-9a-f]{64}$/);
  expect(generateKey()).toMatch(new RegExp(KEY_PATTERN));
  const { requestBody } = paths["/v1/signals"]?.["post"] ?? {};
  expect(requestBody?.description).toContain(String(BODY_BYTES_MAX));
});

test("a body fits the documented schema exactly where the server accepts it", () => {
  const { Signal } = (openApiDocument("http://a") as unknown as Document).components.schemas;
  const ajv = new Ajv2020({ strict: false, formats: { int64: true, double: true } });
  const isDocumented = ajv.compile(Signal as unknown as AnySchema);
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.nat({ max: 600 }).map((length) => "😀".repeat(length)),
    fc.constantFrom("venue_1", "venue_4", "crypto", "stock", "open", "close", "long", "sell", ""),
  );
  const value = fc.oneof(
    text,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.constantFrom<unknown>(null, true, [], {}, 0, 2 ** 53, 2 ** 53 - 1, -1, 1.5, 1e21, 1e300),
    fc.dictionary(fc.string(), fc.jsonValue()),
  );
  const changes = fc.dictionary(
    fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(...Object.keys(Signal?.properties ?? {})) },
      { weight: 1, arbitrary: fc.constantFrom("note", "id", "constructor", "") },
    ),
    value,
    { maxKeys: 3 },
  );
  const seen = { accepted: 0, refused: 0 };
  fc.assert(
    fc.property(changes, fc.subarray(Object.keys(signal)), (changed, dropped) => {
      const drop = dropped.length === 1 ? dropped : [];
      const members = Object.entries({ ...signal, ...changed }).filter(
        ([name]) => !drop.includes(name),
      );
      const body = JSON.stringify(Object.fromEntries(members));
      const isAccepted = accepts(body);
      seen[isAccepted ? "accepted" : "refused"] += 1;
      expect(isDocumented(JSON.parse(body))).toBe(isAccepted);
    }),
    { numRuns: 1_000 },
  );
  expect(seen.accepted).toBeGreaterThan(100);
  expect(seen.refused).toBeGreaterThan(100);
});

interface Client {
  readonly defaults: { readonly baseUrl: string };
  readonly postSignal: (
    body: Record<string, unknown>,
    options: { headers: Record<string, string> },
  ) => Promise<{ status: number; data: Record<string, unknown> }>;
  readonly getOpenApi: () => Promise<{ status: number; data: unknown }>;
}

test("a client that is generated from it submits signals, and knows the answers", async () => {
  const app = await startTestApp();
  const { url, key, call, dataDir } = app;
  const folder = generatedFolder();
  const description = join(folder, "openapi.yaml");
  writeFileSync(description, (await call("/openapi.yaml")).text);
  writeFileSync(join(folder, "client.ts"), await generateSource(description));
  const client = (await import(join(folder, "client.ts"))) as Client;
  expect(client.defaults.baseUrl).toBe(url);

  const headers = { Authorization: `Bearer ${key}` };
  const body = { ...signal, client_signal_id: "a", metadata: { take_profit: 1 } };
  const stored = await client.postSignal(body, { headers });
  expect([stored.status, stored.data]).toEqual([
    201,
    { id: expect.any(String), received_at: expect.any(Number), deduped: false },
  ]);
  const { id } = stored.data;
  const repeated = await client.postSignal(body, { headers: { "X-API-Key": key } });
  expect([repeated.status, repeated.data]).toEqual([200, { id, deduped: true }]);
  const unknown = await client.postSignal(body, { headers: {} });
  expect([unknown.status, unknown.data]).toEqual([
    401,
    { error: "unauthorized", message: expect.stringContaining("Authorization: Bearer") },
  ]);
  const invalid = await client.postSignal({ ...body, side: "up" }, { headers });
  expect([invalid.status, invalid.data]).toEqual([
    422,
    { error: "validation_failed", fields: { side: "must be one of: open, close" } },
  ]);
  expect((await client.getOpenApi()).status).toBe(200);
  expect(query(dataDir, "SELECT id FROM signals")).toEqual([{ id }]);
});

test("the generated client has the types of the interface", async () => {
  const folder = generatedFolder();
  const description = join(folder, "openapi.yaml");
  writeFileSync(description, JSON.stringify(openApiDocument("http://127.0.0.1:8080")));
  writeFileSync(join(folder, "client.ts"), await generateSource(description));
  writeFileSync(join(folder, "right.ts"), clientCode(JSON.stringify(signal)));
  writeFileSync(join(folder, "wrong.ts"), clientCode(JSON.stringify({ ...signal, side: "up" })));
  expect(await typeErrors(folder, "right.ts")).toEqual([]);
  expect(await typeErrors(folder, "wrong.ts")).toEqual(["wrong.ts"]);
});

/** A program that submits this body and tells the answers apart by their status. */
function clientCode(body: string): string {
  return `import { postSignal } from "./client.ts";
export async function submit(): Promise<string> {
  const answer = await postSignal(${body});
  if (answer.status === 201) return answer.data.id + answer.data.received_at.toFixed();
  if (answer.status === 200) return answer.data.id;
  if (answer.status === 422) return Object.keys(answer.data.fields).join();
  return answer.data.error;
}
`;
}

/** Inside the project, so that the client finds its runtime; removed after the test. */
function generatedFolder(): string {
  const cache = join(ROOT, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "client-"));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The names of the files in which the compiler finds errors. */
async function typeErrors(folder: string, file: string): Promise<string[]> {
  // A user's options: `strict`, and not this project's finer ones.
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: "ESNext",
    module: "Preserve",
    lib: ["ESNext", "DOM"],
    types: [],
    allowImportingTsExtensions: true,
  };
  const config = { compilerOptions, files: [file] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = Bun.spawn(
    [join(ROOT, "node_modules", ".bin", "tsc"), "--pretty", "false", "-p", "."],
    {
      cwd: folder,
      stdout: "pipe",
    },
  );
  const output = await new Response(tsc.stdout).text();
  await tsc.exited;
  const places = output
    .split("\n")
    .flatMap((row) => /^([^\s(]+)\(\d+,\d+\): error/.exec(row)?.[1] ?? []);
  if (tsc.exitCode !== 0 && places.length === 0) throw new Error(output);
  return [...new Set(places)];
}

function accepts(body: string): boolean {
  try {
    parseSignal(new TextEncoder().encode(body));
    return true;
  } catch {
    return false;
  }
}

/** Where the public URL is not the address: `call` would go to it. */
function fetchFrom(app: TestApp, path: string) {
  return fetch(`http://127.0.0.1:${app.app.address.port}${path}`).then(async (response) => ({
    headers: response.headers,
    text: await response.text(),
  }));
}
