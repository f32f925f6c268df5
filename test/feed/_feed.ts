/** A server with a feed, and readers of it. */
import { type AnySchema, Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "bun:test";
import { makeCertificate } from "../kit/certificates.ts";
import { freePort, startServe } from "../kit/cli.ts";
import { feedDocument } from "../kit/openapi.ts";
import {
  listen,
  startTestApp,
  temporaryFolder,
  type TestApp,
  type TestAppOptions,
} from "../kit/setup.ts";

export interface FeedLine {
  readonly id: string;
  readonly [field: string]: unknown;
}

export interface FeedAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly signals: readonly FeedLine[];
  readonly ids: readonly string[];
  /** The last line; undefined for an error. */
  readonly end: { readonly next: string | null; readonly done: boolean };
  /** The body of an error; undefined otherwise. */
  readonly error: Record<string, unknown>;
}

interface Operation {
  readonly parameters: readonly { readonly name: string; readonly schema: AnySchema }[];
  readonly responses: Record<string, unknown>;
}

interface Document {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, AnySchema> };
}

const document = feedDocument as unknown as Document;
const ajv = new Ajv2020({ strict: false, formats: { int64: true, double: true } });
const isSignal = ajv.compile(document.components.schemas["Signal"] ?? false);
const documented = document.paths["/feed"]?.["get"]?.parameters ?? [];
const isAfter = ajv.compile(documented.find(({ name }) => name === "after")?.schema ?? false);
const isEnd = ajv.compile(document.components.schemas["End"] ?? false);

/** Sends `GET /feed`; the answer is checked against the feed's document. */
export async function readFeed(
  url: string,
  key: string | null,
  /** Or as they stand in the URL. */
  parameters: Record<string, string | number> | string = {},
  init: RequestInit = {},
): Promise<FeedAnswer> {
  const search =
    typeof parameters === "string"
      ? parameters
      : new URLSearchParams(
          Object.entries(parameters).map(([name, value]) => [name, String(value)]),
        ).toString();
  const headers = key === null ? {} : { Authorization: `Bearer ${key}` };
  const answer = await fetch(`${url}?${search}`, { headers, ...init });
  const text = await answer.text();
  const { status } = answer;
  const after = new URLSearchParams(search).get("after");
  if (status === 200 && after !== null) expect([after, isAfter(after)]).toEqual([after, true]);
  expect(Object.keys(document.paths["/feed"]?.["get"]?.responses ?? {})).toContain(String(status));
  expect(answer.headers.get("X-Request-Id")).toMatch(/^[0-9a-f-]{36}$/);
  const isPage = status === 200;
  expect(answer.headers.get("Content-Type")).toBe(
    isPage ? "application/x-ndjson" : "application/json",
  );
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as FeedLine);
  if (!isPage) {
    const [error] = lines as unknown as [FeedAnswer["error"]];
    const schema = document.components.schemas[String(error["error"])] ?? false;
    expect([ajv.validate(schema, error), error]).toEqual([true, error]);
    const end = undefined as unknown as FeedAnswer["end"];
    return { status, headers: answer.headers, text, signals: [], ids: [], end, error };
  }
  const end = lines.pop() as unknown as FeedAnswer["end"];
  expect(isEnd(end)).toBe(true);
  for (const line of lines) expect([isSignal(line), isSignal.errors]).toEqual([true, null]);
  const error = undefined as unknown as FeedAnswer["error"];
  const ids = lines.map(({ id }) => id);
  return { status, headers: answer.headers, text, signals: lines, ids, end, error };
}

/**
 * A server that gives these answers in turn, then Signalbox's own 404, which ends a reader.
 * `asked`: `after` and `wait` of each request.
 */
export function startFakeFeed(answers: readonly (() => Response)[]) {
  const asked: string[] = [];
  const url = listen((request) => {
    const { searchParams } = new URL(request.url);
    asked.push(`${searchParams.get("after") ?? "none"} ${searchParams.get("wait")}`);
    return answers[asked.length - 1]?.() ?? Response.json({ error: "not_found" }, { status: 404 });
  });
  return { url, asked };
}

/** Answers of {@link startFakeFeed} to a reader that begins now, two of which are cut, and what it asks. */
export function answersFromNow() {
  const [before, id] = ["01K5QZ8F3V9X2M7T4B6N1C0D8E", "01K5QZ8F3V9X2M7T4B6N1C0D8F"];
  const line = `${JSON.stringify({ id, metadata: { n: 0 } })}\n`;
  const answers = [
    () => new Response(line),
    () => new Response(`{"next":"${before}","done":true}\n`),
    () => new Response(line),
    () => new Response(`${line}{"next":"${id}","done":true}\n`),
  ];
  return { id, answers, asks: ["now 0", "now 0", `${before} 30`, `${before} 30`, `${id} 30`] };
}

/** URLs that no retry can help, and what a client says about each. */
export async function hopelessUrls(): Promise<[url: string, advice: string][]> {
  return [
    [startFailing(), "Is it http or https?"],
    [startFailing(await makeCertificate("private")), "For a private certificate, set"],
  ];
}

/** Answers 503. Returns its https URL, with or without TLS. */
function startFailing(tls?: { cert: string; key: string }): string {
  const url = listen(() => new Response("{}", { status: 503 }), tls);
  return url.replace("http:", "https:");
}

/** A proxy that answers by itself. `asked`: the URLs that it got, which no client should send. */
export function startProxy() {
  const asked: string[] = [];
  const url = listen((request) => {
    asked.push(request.url);
    return new Response("{}", { status: 407 });
  });
  return { env: { http_proxy: url, HTTP_PROXY: url }, asked };
}

/** A server with a feed that can be started again at the same addresses. `env`: of a database for its data. */
export async function startWithFeed(
  dataDir = temporaryFolder(),
  env: Readonly<Record<string, string>> = {},
) {
  const [port, readPort] = [await freePort(), await freePort()];
  const where = { dataDir, env, listen: `127.0.0.1:${port}` };
  const start = () => startServe(["--read-listen", `127.0.0.1:${readPort}`], where);
  return { dataDir, readUrl: `http://127.0.0.1:${readPort}`, start, first: await start() };
}

export interface FeedApp extends TestApp {
  readonly feedUrl: string;
  /** A read key of desk `alpha`, and one of all desks. */
  readonly readKey: string;
  readonly allKey: string;
  readonly mintRead: (desk: string | null) => Promise<{ key: string; id: string }>;
  /** Reads with the key of desk `alpha`. */
  readonly read: (parameters?: Record<string, string | number>) => Promise<FeedAnswer>;
  /** Stores a signal, and returns its id. */
  readonly store: (fields?: object, key?: string) => Promise<string>;
}

export async function startFeedApp(options: TestAppOptions = {}): Promise<FeedApp> {
  const readListen = { host: "127.0.0.1", port: 0 };
  const app = await startTestApp({ ...options, config: { readListen, ...options.config } });
  const { registry } = app;
  const mintRead = async (desk: string | null) => {
    const label = "reader";
    const { key, record } = await registry.mintKey({
      desk,
      label,
      expiresInMs: null,
      scope: "read",
    });
    return { key, id: record.id };
  };
  const feedUrl = app.app.feedUrl ?? "";
  const readKey = (await mintRead("alpha")).key;
  const store = async (fields: object = {}, key = app.key): Promise<string> => {
    const body = { source: "venue_1", type: "stock", symbol: "A", side: "open", ...fields };
    const { status, body: answer } = await app.post(body, { Authorization: `Bearer ${key}` });
    expect(status).toBe(201);
    return String(answer["id"]);
  };
  return {
    ...app,
    feedUrl,
    readKey,
    allKey: (await mintRead(null)).key,
    mintRead,
    read: (parameters) => readFeed(feedUrl, readKey, parameters),
    store,
  };
}
