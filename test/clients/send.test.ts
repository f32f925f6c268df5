/** `signalbox send` against a real server, with everything in between that can fail. */
import { describe, expect, jest, mock, test } from "bun:test";
import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import * as printing from "../../src/cli/print.ts";
import { fileLines } from "../../src/domain/signal/file.ts";
import { parseSignal } from "../../src/domain/signal/signal.ts";
import type { StoredSignal } from "../../src/domain/signal/stored-signal.ts";
import { Input } from "../../src/send/input.ts";
import { idOfLine, newFirstId } from "../../src/send/journal.ts";
import { makeCertificate, writeCertificate } from "../kit/certificates.ts";
import { cli, expectRefusal, freePort, mintKey, signalbox, spawn, startServe } from "../kit/cli.ts";
import {
  callUrl,
  clearSignals,
  listen,
  onCleanup,
  posting,
  query,
  sharedByFile,
  signal,
  temporaryFolder,
} from "../kit/setup.ts";
import { CTRL_C, startOnTerminal } from "../kit/terminal.ts";
import { STORM_SIGNALS, STORM_TIMEOUT_MS, storm } from "./_flaky.ts";

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const WRONG_KEY = `sbk_${"0a".repeat(32)}`;

interface Summary {
  readonly signals: number;
  readonly stored: number;
  readonly duplicates: number;
  readonly duplicates_differing: number;
  readonly refused: number;
  readonly unknown: number;
  readonly not_sent: number;
}

const shared = sharedByFile(() => startServe(["--rate-limit", "0"]));

/** A server without signals, and a folder from which signals are sent to it. With flags, one of its own. */
async function prepare(...flags: string[]) {
  const server = flags.length === 0 ? shared() : await startServe(flags);
  clearSignals(server.dataDir);
  const { key } = await mintKey(server.dataDir);
  return { server, ...sendingTo(server.url, key) };
}

function sendingTo(url: string, key: string) {
  const cwd = temporaryFolder();
  const env = { SIGNALBOX_KEY: key, SIGNALBOX_URL: url };
  const file = (lines: readonly unknown[], name = "signals.ndjson"): string => {
    const texts = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)));
    writeFileSync(join(cwd, name), texts.map((text) => `${text}\n`).join(""));
    return name;
  };
  const send = (args: readonly string[], options: { stdin?: string; env?: object } = {}) =>
    cli(["send", ...args], { cwd, ...options, env: { ...env, ...options.env } });
  /** Must end with this code; returns the summary without the time that it took. */
  const summary = async (code: number, ...args: string[]): Promise<Summary> => {
    const result = await send([...args, "--json"]);
    expect(result).toMatchObject({ code });
    const { duration_ms, ...counts } = JSON.parse(result.stdout) as Summary & {
      duration_ms: number;
    };
    expect(duration_ms).toBeGreaterThanOrEqual(0);
    return counts;
  };
  return { cwd, env, key, file, send, summary };
}

/** Signals whose symbols are their line numbers, without ids. */
function numbered(count: number): object[] {
  return Array.from({ length: count }, (_, at) => ({ ...signal, symbol: String(at + 1) }));
}

function withOwnId(at: number, more: object = {}): object {
  return { ...signal, client_signal_id: `id-${at}`, ...more };
}

/** Every symbol that is stored, with how often. */
function stored(dataDir: string): Record<string, number> {
  const rows = query<{ symbol: string; n: number }>(
    dataDir,
    "SELECT symbol, count(*) AS n FROM signals GROUP BY symbol ORDER BY CAST(symbol AS INTEGER)",
  );
  return Object.fromEntries(rows.map(({ symbol, n }) => [symbol, n]));
}

function once(count: number): Record<string, number> {
  return Object.fromEntries(numbered(count).map((_, at) => [String(at + 1), 1]));
}

/** Forwards a request to a server. */
async function forward(url: string, request: Request): Promise<Response> {
  const body = await request.text();
  const { headers } = request;
  const answer = await fetch(`${url}/v1/signals`, { method: "POST", headers, body });
  return new Response(await answer.text(), { status: answer.status });
}

const created = () =>
  Response.json({ id: "01M0", received_at: 1, deduped: false }, { status: 201 });

describe("a file", () => {
  test("is stored whole, and again only as duplicates", async () => {
    const { server, cwd, file, send, summary, key } = await prepare();
    const own = { ...signal, symbol: "2", client_signal_id: "mine" };
    const name = file([
      ...numbered(1),
      own,
      `  ${JSON.stringify(numbered(3)[2])}  \r`,
      "",
      " \t\r",
    ]);
    const first = await send([name]);
    expect(first).toMatchObject({
      code: 0,
      stdout: "",
      stderr: expect.stringMatching(
        /^signals.ndjson: 3 stored, 0 duplicates, 0 refused, 0 unknown, 0 not sent, in \d+\w+\.\n$/,
      ),
    });
    expect(await summary(0, name)).toEqual({
      signals: 3,
      stored: 0,
      duplicates: 3,
      duplicates_differing: 0,
      refused: 0,
      unknown: 0,
      not_sent: 0,
    });
    expect(stored(server.dataDir)).toEqual(once(3));
    const ids = query<{ id: string }>(
      server.dataDir,
      "SELECT client_signal_id AS id FROM signals ORDER BY symbol",
    ).map(({ id }) => id);
    expect(ids).toEqual([expect.stringMatching(UUID_V7), "mine", expect.stringMatching(UUID_V7)]);
    const journal = join(cwd, "signals.ndjson.journal");
    expect(statSync(journal).mode & 0o777).toBe(0o600);
    expect(readFileSync(journal, "utf8") + first.stderr).not.toContain(key);
  });

  test("keeps metadata to the byte, and needs no journal if every signal has an id", async () => {
    const { server, cwd, file, summary } = await prepare();
    const metadata = '{"b": 12345678901234567890, "a":1.10}';
    const text = JSON.stringify(signal);
    const lines = [`{"client_signal_id":"a","metadata":${metadata},${text.slice(1)}`];
    expect(await summary(0, file(lines))).toMatchObject({ stored: 1 });
    expect(existsSync(join(cwd, "signals.ndjson.journal"))).toBe(false);
    const withoutId = file([`\uFEFF{"metadata":${metadata},${text.slice(1)}`], "other.ndjson");
    expect(await summary(0, withoutId)).toMatchObject({ stored: 1 });
    const rows = query(server.dataDir, "SELECT metadata FROM signals");
    expect(rows).toEqual([{ metadata }, { metadata }]);
  });

  test("with an invalid line is not sent, and the reasons are the server's", async () => {
    const { server, cwd, key, file, send, summary } = await prepare();
    const lines = [
      { ...signal, side: "up", price: "1" },
      { ...signal, client_signal_idd: "x" },
      { source: "venue_1" },
      "{",
      "[]",
      '{"a":1,"a":2}',
      { ...signal, metadata: { long: "x".repeat(70_000) } },
      { ...signal, metadata: { long: "x".repeat(600_000) } },
    ];
    const name = file([signal, ...lines]);
    const { code, stderr } = await send([name, "--refused", "refused.ndjson"]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      "line 2: side: must be one of: open, close; price: must be a number\nline 3: client_signal_idd: unknown field; did you mean client_signal_id?\n",
    );
    expect(stderr).toEndWith(
      "All are in refused.ndjson.\nsignalbox: Nothing was sent, because signals.ndjson has 8 invalid signals: correct the lines above, then try again.\n",
    );
    expect(stored(server.dataDir)).toEqual({});
    const refused = readFileSync(join(cwd, "refused.ndjson"), "utf8").trimEnd().split("\n");
    expect(refused).toHaveLength(lines.length);
    for (const [at, line] of lines.entries()) {
      const answer = await callUrl(server.url, "/v1/signals", posting(key, line));
      expect(JSON.parse(refused[at] ?? "")).toEqual({
        line: at + 2,
        status: answer.status,
        ...answer.body,
      });
    }
    const dry = await send([name, "--dry-run", "--json"], { env: { SIGNALBOX_KEY: "" } });
    expect(dry.code).toBe(1);
    expect(JSON.parse(dry.stdout)).toEqual({
      signals: 9,
      invalid: 8,
      without_client_signal_id: 1,
    });
    expect(await summary(0, file([signal]))).toMatchObject({ stored: 1 });
  });

  const text = JSON.stringify(signal);
  test.each<[name: string, lines: readonly unknown[], says: RegExp, ...flags: string[]]>([
    [
      "is an array",
      [`[${text},\n${text}]`],
      /^(line \d: .*\n){2}One JSON .*: jq -c '\.\[\]' FILE/m,
    ],
    ["has an object of several lines", [JSON.stringify(signal, null, 2)], /^One JSON object per /m],
    [
      "begins with a line that is no JSON",
      ["# exported today", signal, { ...signal, side: undefined }],
      /^line 1: The line .*\nline 3: side: .*\nsignalbox: .* has 2 invalid signals: /,
    ],
    [
      "has more invalid lines than are shown",
      Array.from({ length: 30 }, () => "{}"),
      /^(line .*\n){10}and 20 more: list all with --refused FILE\nsignalbox: /,
    ],
    [
      "gets no journal",
      [signal],
      /^signalbox: .* cannot be written \(ENOENT\), and nothing was sent: .*--journal FILE/,
      "--journal",
      "no/such/folder",
    ],
  ])("that %s is refused, with what to type", async (_name, lines, says, ...flags) => {
    const { file, send } = sendingTo("http://127.0.0.1:1", WRONG_KEY);
    const { code, stderr } = await send([file(lines), ...flags]);
    expect(stderr).toMatch(says);
    expect(code).toBe(1);
  });

  const CSV = [
    "\uFEFFsource,type,symbol,side,direction,price,signal_time,metadata",
    'venue_2,crypto,"a ""b"", cö",open,,1.50,1790000000000,"{""n"":[1,null]}"',
  ];

  test("that is CSV is refused in one sentence, and is sent after what is to type", async () => {
    const { cwd, file, send } = sendingTo("http://127.0.0.1:1", WRONG_KEY);
    const { code, stderr } = await send([file(CSV, "f.csv")]);
    expect(stderr).toMatch(
      /^signalbox: Nothing was sent, because f.csv is not NDJSON, .* CSV .*: python3 -c .* < FILE > signals.ndjson\n$/,
    );
    expect(code).toBe(1);
    if (Bun.which("python3") === null) return;
    const convert = stderr.slice(stderr.indexOf("python3")).replace("FILE", "f.csv");
    expect(Bun.spawnSync(["sh", "-c", convert], { cwd }).exitCode).toBe(0);
    expect(JSON.parse(readFileSync(join(cwd, "signals.ndjson"), "utf8"))).toEqual({
      source: "venue_2",
      type: "crypto",
      symbol: 'a "b", cö',
      side: "open",
      price: 1.5,
      signal_time: 1_790_000_000_000,
      metadata: { n: [1, null] },
    });
    expect((await send(["signals.ndjson", "--dry-run"])).code).toBe(0);
  });

  test("that is an export is sent without the fields that docs/cli.md names", () => {
    const page = readFileSync(join(import.meta.dir, "../../docs/cli.md"), "utf8");
    const [, removed = ""] = /jq -c 'del\(([^)]+)\)/.exec(page) ?? [];
    const added = { id: "", desk: "", received_at: 1, key_id: "", key_label: null, key_last4: "" };
    const { metadata: _, ...line } = JSON.parse(
      fileLines.ndjson({ ...added, metadata: null } as StoredSignal),
    ) as object & { metadata: null };
    expect(removed).toBe(
      Object.keys(line)
        .map((name) => `.${name}`)
        .join(", "),
    );
  });

  test("with duplicates that differ from the stored signals says which and how", async () => {
    const { file, send, summary } = await prepare();
    const ids = Array.from({ length: 12 }, (_, at) => at);
    expect(await summary(0, file(ids.map((at) => withOwnId(at))))).toMatchObject({
      duplicates_differing: 0,
    });
    const name = file([withOwnId(0), withOwnId(1, { symbol: "X", price: 1 })]);
    expect(await summary(0, name)).toMatchObject({ duplicates: 2, duplicates_differing: 1 });
    expect((await send([name])).stderr).toEndWith(
      "\n1 duplicate differs from the stored signal (line 2: symbol, price).\n",
    );
    const { stderr } = await send([file(ids.map((at) => withOwnId(at, { price: 1 })))]);
    expect(stderr).toMatch(
      /\n12 duplicates differ from the stored signal \(line \d+: price; .*; and 2 more\)\.\n$/,
    );
  });

  test("that the id would make too large is refused before it is sent", async () => {
    const { server, send, file } = await prepare();
    const bytes = JSON.stringify({ ...signal, metadata: { long: "" } }).length;
    const filled = (length: number) => ({
      ...signal,
      metadata: { long: "x".repeat(length - bytes) },
    });
    const { code, stderr } = await send([file([filled(65_536 - 58), filled(65_536 - 57)])]);
    expect(stderr).toMatch(/^line 2: The line is larger than 65536 bytes\.\n/);
    expect(code).toBe(1);
    expect((await send([file([filled(65_536 - 58)])])).code).toBe(0);
    expect(query(server.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 1 }]);
  });

  test("is only validated with --dry-run", async () => {
    const { send, file, cwd } = sendingTo("http://127.0.0.1:1", "");
    expect(await send([file(numbered(1200)), "--dry-run"])).toEqual({
      code: 0,
      stdout: "",
      stderr: "signals.ndjson: 1,200 signals, all valid; 1,200 get a client_signal_id when sent.\n",
    });
    expect(existsSync(join(cwd, "signals.ndjson.journal"))).toBe(false);
  });

  test.each([
    ["overwritten", (path: string) => overwrite(path, 600_000, "X"), true],
    ["cut off", (path: string) => truncateSync(path, 600_000), true],
    ["appended to", (path: string) => appendFileSync(path, "{}\n"), false],
  ])("that is %s after the validation", async (_, change, isRefused) => {
    const path = join(temporaryFolder(), "log");
    writeFileSync(path, `${JSON.stringify(signal)}\n`.repeat(10_000));
    const input = await Input.open(path);
    const countLines = async (): Promise<number> => {
      let count = 0;
      for await (const _line of input.lines()) count += 1;
      return count;
    };
    expect(await countLines()).toBe(10_000);
    change(path);
    const counted = await countLines().catch(String);
    expect(counted).toEqual(isRefused ? expect.stringContaining("log changed") : 10_000);
  });
});

function overwrite(path: string, position: number, text: string): void {
  const descriptor = openSync(path, "r+");
  writeSync(descriptor, text, position);
  closeSync(descriptor);
}

test("lines are the same wherever the chunks of the file end", async () => {
  const path = join(temporaryFolder(), "lines");
  const texts = Array.from({ length: 400 }, (_, at) => "x".repeat((at * 7_919) % 65_537));
  texts.push("y".repeat(65_537), "z".repeat(700_000), "last");
  writeFileSync(path, texts.join("\n"));
  const input = await Input.open(path);
  const read: (string | null)[] = [];
  for await (const { number, bytes } of input.lines()) {
    read[number - 1] = bytes === null ? null : Buffer.from(bytes).toString();
  }
  const expected = texts.map((text) => (text.length > 65_536 ? null : text));
  expect(Array.from(read, (text) => text ?? null)).toEqual(expected.map((text) => text || null));
});

test("the ids of lines are UUIDs v7 that increase", () => {
  const first = newFirstId();
  const ids = [1, 2, 3, 1_000, 1e9, 1e15].map((line) => idOfLine(first, line));
  for (const id of ids) expect(id).toMatch(UUID_V7);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.toSorted()).toEqual(ids);
  const timeMs = parseInt(first.replaceAll("-", "").slice(0, 12), 16);
  expect(Math.abs(Date.now() - timeMs)).toBeLessThan(60_000);
  expect(newFirstId()).not.toBe(first);
});

describe("the journal", () => {
  test("belongs to one input: another one is refused, and nothing is sent", async () => {
    const { server, cwd, file, send } = await prepare();
    const name = file(numbered(2));
    expect((await send([name])).code).toBe(0);
    for (const other of [numbered(1), numbered(3).toReversed(), [...numbered(1), ...numbered(9)]]) {
      file(other);
      await expectRefusal(["send", name], /changed since .*journal was made .* another journal/, {
        cwd,
        env: { SIGNALBOX_KEY: WRONG_KEY, SIGNALBOX_URL: server.url },
      });
    }
    expect(stored(server.dataDir)).toEqual(once(2));
    file(numbered(3));
    expect((await send([name, "--journal", "another"])).code).toBe(0);
    expect(stored(server.dataDir)).toEqual({ "1": 2, "2": 2, "3": 1 });
  });

  test("also belongs to lines that are appended, and then to these", async () => {
    const { server, file, send, summary } = await prepare();
    // More than is read at once.
    const metadata = { note: "x".repeat(10_000) };
    const long = (count: number) => numbered(count).map((line) => ({ ...line, metadata }));
    const name = file(long(100));
    expect(await summary(0, name)).toMatchObject({ stored: 100 });
    file(long(101));
    expect(await summary(0, name)).toMatchObject({ stored: 1, duplicates: 100 });
    file([...long(100), signal]);
    expect((await send([name])).stderr).toContain("changed since signals.ndjson.journal");
    file(long(102));
    expect(await summary(0, name)).toMatchObject({ stored: 1, duplicates: 101 });
    expect(stored(server.dataDir)).toEqual(once(102));
  });

  test.each([
    ["is cut off", '{"signalbox_journal":1,'],
    ["is empty", ""],
    ["is another file", "{}\n"],
  ])("that %s is refused, and left as it is", async (_, text) => {
    const { file, send, cwd } = sendingTo("http://127.0.0.1:1", WRONG_KEY);
    writeFileSync(join(cwd, "j"), text);
    const { code, stderr } = await send([file([signal]), "--journal", "j"]);
    expect(stderr).toContain("j is not a complete journal: name another");
    expect(code).toBe(1);
    expect(readFileSync(join(cwd, "j"), "utf8")).toBe(text);
  });

  test("and the refused signals never overwrite the input", async () => {
    const { file, send, cwd } = sendingTo("http://127.0.0.1:1", WRONG_KEY);
    const name = file([signal]);
    for (const flag of ["--journal", "--refused"]) {
      const { code, stderr } = await send([name, flag, `./${name}`]);
      expect(stderr).toContain(`is the input: name another file with ${flag} FILE.`);
      expect(code).toBe(2);
    }
    expect(readFileSync(join(cwd, name), "utf8")).toBe(`${JSON.stringify(signal)}\n`);
  });

  test("the refused signals replace only a list of refused signals, or an empty file", async () => {
    const { file, send, cwd } = sendingTo("http://127.0.0.1:1", WRONG_KEY);
    const read = (name: string) => readFileSync(join(cwd, name), "utf8");
    const invalid = file(["{", "{}"]);
    file([WRONG_KEY], "key");
    const kept = await send([invalid, "--key-file", "key", "--refused", "key"]);
    expect(kept).toMatchObject({ code: 1, stderr: expect.stringContaining("left as it is") });
    expect(read("key")).toBe(`${WRONG_KEY}\n`);
    file([], "list");
    await send([invalid, "--refused", "list"]);
    const both = read("list");
    await send([invalid, "--refused", "list"]);
    expect(read("list")).toBe(both);
    await send([file([signal, "{}"]), "--refused", "list"]);
    expect(read("list")).toStartWith('{"line":2,');
    expect((await send([invalid, "--refused", "/dev/null"])).stderr).toContain("All are in");
  });
});

describe("stdin", () => {
  const stdin = numbered(3)
    .map((line) => `${JSON.stringify(line)}\n`)
    .join("");

  test("needs a journal if a signal has no id, and repeats the ids with it", async () => {
    const { server, send } = await prepare();
    const refused = await send(["-"], { stdin });
    expect(refused.stderr).toMatch(
      /Nothing was sent: 3 signals in stdin without .* --journal FILE/,
    );
    expect(refused.code).toBe(1);
    expect(stored(server.dataDir)).toEqual({});
    for (const counts of ["3 stored, 0 duplicates", "0 stored, 3 duplicates"]) {
      const { code, stderr } = await send(["-", "--journal", "j"], { stdin });
      expect(stderr).toStartWith(`stdin: ${counts}`);
      expect(code).toBe(0);
    }
    expect((await send(["-", "--journal", "j"], { stdin: `\n${stdin}` })).code).toBe(1);
    expect(stored(server.dataDir)).toEqual(once(3));
  });

  test("may be a pipe with a name, and may be empty", async () => {
    const { server, send, cwd, file } = await prepare();
    const pipe = join(cwd, "pipe");
    expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
    const sending = send([pipe, "--journal", "j"]);
    expect(Bun.spawnSync(["cp", join(cwd, file(numbered(2_000))), pipe]).exitCode).toBe(0);
    expect((await sending).stderr).toStartWith(`${pipe}: 2,000 stored`);
    expect(stored(server.dataDir)).toEqual(once(2_000));
    expect((await send(["-"])).stderr).toStartWith("stdin: 0 stored");
  });
});

describe("the key", () => {
  test("comes from a file or the environment, and what to type is said if it is missing", async () => {
    const { file, send, cwd } = await prepare();
    const name = file([signal]);
    const none = await send([name], { env: { SIGNALBOX_KEY: "" } });
    expect(none.stderr).toContain("--key-file FILE, or type: stty -echo; read -r SIGNALBOX_KEY");
    for (const [text, code] of [
      [`${WRONG_KEY}\n`, 1],
      ["sbk_123", 1],
      ["", 1],
    ] as const) {
      writeFileSync(join(cwd, "key"), text);
      expect((await send([name, "--key-file", "key"])).code).toBe(code);
    }
    const missing = await send([name, "--key-file", "nowhere"]);
    expect(missing.stderr).toContain("nowhere cannot be read (ENOENT): name a file");
    const malformed = await send([name], { env: { SIGNALBOX_KEY: "secret" } });
    expect(malformed.stderr).toContain("SIGNALBOX_KEY does not contain an API key");
    expect(malformed.stderr).not.toContain("secret");
    const reader = await send([name], { env: { SIGNALBOX_KEY: WRONG_KEY.replace("sbk", "sbr") } });
    expect(reader.stderr).toContain("SIGNALBOX_KEY contains a read key, which sends nothing:");
  });

  test("that the server refuses stops everything, with one message", async () => {
    let requests = 0;
    const { server } = await prepare();
    const url = listen((request) => {
      requests += 1;
      return forward(server.url, request);
    });
    const { file, send } = sendingTo(url, WRONG_KEY);
    const { code, stderr } = await send([file(numbered(500)), "--connections", "4"]);
    expect(stderr.match(/refused the key/g)).toHaveLength(1);
    expect(stderr).toContain("With that changed, resume with the same ids,");
    expect(stderr).toContain("0 unknown, 500 not sent");
    expect(code).toBe(1);
    expect(requests).toBeLessThanOrEqual(4);
  });

  test("crosses no network unencrypted: neither to another host nor to a proxy", async () => {
    const { file, send, summary } = await prepare();
    const name = file([signal]);
    const { code, stderr } = await send([name, "--url", "http://signals.example.com"]);
    expect(stderr).toContain("Write https://signals.example.com");
    expect(code).toBe(2);
    let proxied = 0;
    const proxy = listen(() => {
      proxied += 1;
      return created();
    });
    const env = { http_proxy: proxy, HTTP_PROXY: proxy, no_proxy: "", NO_PROXY: "" };
    expect((await send([name], { env })).stderr).toStartWith("signals.ndjson: 1 stored");
    expect(proxied).toBe(0);
    expect(await summary(0, name)).toMatchObject({ duplicates: 1 });
  });
});

describe("each signal is stored exactly once", () => {
  test("whatever fails, and while the server is killed and stopped", async () => {
    const { rows, repeats } = await storm(async (url, key, dataDir) => {
      const { file, summary } = sendingTo(url, key);
      const lines = Array.from({ length: STORM_SIGNALS }, (_, at) => ({
        ...signal,
        symbol: `S${at}`,
      }));
      const counts = await summary(0, file(lines), "--timeout", `${STORM_TIMEOUT_MS}ms`);
      expect(counts.stored + counts.duplicates).toBe(STORM_SIGNALS);
      return query<{ id: string }>(
        dataDir,
        "SELECT id FROM signals ORDER BY CAST(substr(symbol, 2) AS INTEGER)",
      ).map(({ id }) => id);
    });
    expect(rows.filter((count) => count !== 1)).toEqual([]);
    expect(repeats).toBeGreaterThan(STORM_SIGNALS / 2);
  });

  test("when send is killed in the middle, twice, and run again", async () => {
    const { server, cwd, env, file, summary } = await prepare();
    const name = file(numbered(4_000));
    for (const enough of [300, 1_500]) {
      const child = spawn(["send", name], { cwd, env });
      await untilStored(server.dataDir, enough);
      child.kill("SIGKILL");
      await child.exited;
    }
    expect(Object.keys(stored(server.dataDir)).length).toBeLessThan(4_000);
    const counts = await summary(0, name);
    expect(counts.duplicates).toBeGreaterThanOrEqual(1_500);
    expect(counts.stored + counts.duplicates).toBe(4_000);
    expect(stored(server.dataDir)).toEqual(once(4_000));
  });
});

async function untilStored(dataDir: string, enough: number): Promise<void> {
  const count = () => query<{ n: number }>(dataDir, "SELECT count(*) AS n FROM signals")[0]?.n ?? 0;
  while (count() < enough) await Bun.sleep(5);
}

/** Takes requests, and answers them when told. */
function slowServer() {
  const answer = Promise.withResolvers<void>();
  const arrived: Request[] = [];
  const url = listen(async (request) => {
    arrived.push(request);
    await answer.promise;
    return created();
  });
  return {
    ...sendingTo(url, WRONG_KEY),
    answer: () => answer.resolve(),
    untilRequests: async (count: number) => {
      while (arrived.length < count) await Bun.sleep(5);
    },
    requests: () => arrived.length,
  };
}

describe("Ctrl-C", () => {
  test("finishes what is in flight, and says how to resume", async () => {
    const { cwd, env, file, answer, untilRequests, requests } = slowServer();
    const name = file(numbered(100), "a b.ndjson");
    const flags = ["--connections", "3", "--give-up-after", "90s", "--json"];
    const child = spawn(["send", ...flags, name], { cwd, env });
    await untilRequests(3);
    expect(JSON.parse(readFileSync(join(cwd, `${name}.journal`), "utf8"))).toMatchObject({
      first_id: expect.stringMatching(UUID_V7),
    });
    child.kill("SIGINT");
    const stderr = new Response(child.stderr).text();
    await Bun.sleep(700);
    expect(child.exitCode).toBe(null);
    answer();
    expect(await child.exited).toBe(1);
    expect(JSON.parse(await new Response(child.stdout).text())).toMatchObject({
      stored: 3,
      not_sent: 97,
    });
    expect(await stderr).toMatch(
      /^Stopping after .* Ctrl-C again .*\na b.ndjson: 3 stored.*\nsignalbox: Resume .*: signalbox send --url http:\S+ --connections 3 --give-up-after 90s --json 'a b.ndjson'\n$/,
    );
    expect(requests()).toBe(3);
  });

  test("does not wait for pauses between attempts", async () => {
    const url = listen(() => new Response("", { status: 503, headers: { "Retry-After": "60" } }));
    const { cwd, env, file } = sendingTo(url, WRONG_KEY);
    const child = spawn(["send", file(numbered(2)), "--json"], { cwd, env });
    const reader = child.stderr.getReader();
    expect(Buffer.from((await reader.read()).value ?? "").toString()).toContain(
      `Waiting for ${url} (503): 2 signals waiting, trying again\n`,
    );
    const startedAt = performance.now();
    child.kill("SIGTERM");
    expect(await child.exited).toBe(1);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(JSON.parse(await new Response(child.stdout).text())).toMatchObject({ unknown: 2 });
  });

  test("a second time ends at once, and says how to resume", async () => {
    const { cwd, env, file, untilRequests } = slowServer();
    const child = spawn(["send", file(numbered(5))], { cwd, env });
    await untilRequests(5);
    child.kill("SIGINT");
    await Bun.sleep(800);
    child.kill("SIGINT");
    expect(await child.exited).toBe(1);
    expect(await new Response(child.stderr).text()).toMatch(
      /\nStopped at once\. To resume, type: signalbox send --url \S+ signals.ndjson\n$/,
    );
  });

  test("ends the command while it waits for stdin", async () => {
    const { cwd, env } = sendingTo("http://127.0.0.1:1", WRONG_KEY);
    const child = Bun.spawn([...signalbox, "send", "-"], {
      cwd,
      env: { PATH: process.env["PATH"], ...env },
      stdin: "pipe",
      stderr: "pipe",
    });
    onCleanup(() => child.kill("SIGKILL"));
    await child.stdin.write("{}\n");
    await child.stdin.flush();
    await Bun.sleep(1_000);
    child.kill("SIGINT");
    expect(await child.exited).toBe(1);
    expect(await new Response(child.stderr).text()).toBe("signalbox: Stopped: nothing was sent.\n");
  });
});

describe("what no retry can help fails at once", () => {
  test.each([
    ["another path", { error: "not_found", message: "Other." }, 404, "answered 404: Other."],
    ["https_required", { error: "https_required", message: "HTTPS." }, 403, "403: HTTPS."],
  ])("%s", async (_, body, status, says) => {
    let requests = 0;
    const url = listen(() => {
      requests += 1;
      return Response.json(body, { status });
    });
    const { file, send } = sendingTo(url, WRONG_KEY);
    const { code, stderr } = await send([file(numbered(50)), "--connections", "1"]);
    expect(stderr).toContain(says);
    expect(stderr).toContain("--url URL");
    expect(stderr).toContain(" 0 unknown, 50 not");
    expect(code).toBe(1);
    expect(requests).toBe(1);
  });

  test("a port that speaks http, and the address of the examples", async () => {
    const { server, file, send } = await prepare();
    const name = file([signal]);
    const plain = await send([name, "--url", server.url.replace("http:", "https:")]);
    expect(plain.stderr).toContain("is its address http or https?");
    const example = await send([name, "--url", "https://signals.example.com"]);
    expect(example.stderr).toContain("change the URL to your server's address");
    expect([plain.code, example.code]).toEqual([1, 1]);
  });

  test("a certificate that is not trusted; --ca trusts it, for its names only", async () => {
    const files = writeCertificate(temporaryFolder(), await makeCertificate("private"));
    const { server, file, send, cwd } = await prepare(
      "--tls-cert",
      files.certFile,
      "--tls-key",
      files.keyFile,
    );
    const name = file([signal]);
    const refused = await send([name]);
    expect(refused.stderr).toContain("is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)");
    expect(refused.code).toBe(1);
    const lax = await send([name], { env: { NODE_TLS_REJECT_UNAUTHORIZED: "0" } });
    expect(lax.stderr).toContain("is not trusted");
    writeFileSync(join(cwd, "garbage"), "x");
    const garbage = await send([name, "--ca", "garbage"]);
    expect(garbage.stderr).toContain("garbage is not a PEM certificate");
    const other = server.url.replace("127.0.0.1", "[::ffff:127.0.0.1]");
    const wrongName = await send([name, "--ca", files.certFile, "--url", other]);
    expect(wrongName.stderr).toContain("is not trusted (ERR_TLS_CERT_ALTNAME_INVALID)");
    expect(stored(server.dataDir)).toEqual({});
    const trusted = await send([name, "--ca", files.certFile]);
    expect(trusted.stderr).toStartWith("signals.ndjson: 1 stored");
    expect(trusted.code).toBe(0);
  });
});

describe("a signal without success", () => {
  test("that the server refuses is reported, and the others are stored", async () => {
    const { server, key } = await prepare();
    const fields = { symbol: "not on this server" };
    const url = listen(async (request) => {
      const { symbol } = (await request.clone().json()) as { symbol: string };
      return symbol === "2"
        ? Response.json({ error: "validation_failed", fields }, { status: 422 })
        : forward(server.url, request);
    });
    const { file, send, cwd } = sendingTo(url, key);
    const { code, stderr } = await send([file(numbered(3)), "--refused", "r"]);
    expect(stderr).toMatch(/^line 2: symbol: not on this server\nAll are in r\.\n/);
    expect(stderr).toContain("The server refused 1 signal: correct them in a new file");
    expect(code).toBe(1);
    expect(JSON.parse(readFileSync(join(cwd, "r"), "utf8"))).toEqual({
      line: 2,
      status: 422,
      error: "validation_failed",
      fields,
    });
    expect(stored(server.dataDir)).toEqual({ "1": 1, "3": 1 });
  });

  test("is given up after a time, and the others are stored", async () => {
    const { server, key } = await prepare();
    const url = listen(async (request) => {
      const { symbol } = (await request.clone().json()) as { symbol: string };
      const isBad = symbol === "2";
      return isBad ? new Response("", { status: 500 }) : forward(server.url, request);
    });
    const { file, send } = sendingTo(url, key);
    const args = ["--give-up-after", "2s", "--connections", "2"];
    const { code, stderr } = await send([file(numbered(200)), ...args]);
    expect(stderr).toContain("199 stored, 0 duplicates, 0 refused, 1 unknown, 0 not sent");
    expect(stderr).toContain("nothing is stored twice: signalbox send --url");
    expect(code).toBe(1);
  });

  test("ends the run if the server answers none", async () => {
    const { cwd, file, send } = sendingTo(`http://127.0.0.1:${await freePort()}`, WRONG_KEY);
    const args = ["--give-up-after", "1s", "--connections", "2", "--json"];
    const { code, stdout, stderr } = await send([file(numbered(50)), ...args]);
    expect(JSON.parse(stdout)).toMatchObject({ unknown: 0, not_sent: 50 });
    expect(stderr).toMatch(/^Waiting for http:\S+ \(connection refused\): 50 signals waiting, /);
    expect(stderr.match(/Waiting/g)).toHaveLength(1);
    expect(stderr).toMatch(/Gave up on http:\S+: connection refused\. Check .* --url URL\. Resume/);
    expect(code).toBe(1);
    expect(existsSync(join(cwd, "signals.ndjson.journal"))).toBe(true);
  });
});

test("the address is that of the folder's running server, and is in the command that resumes", async () => {
  const { server, file, cwd, key } = await prepare();
  const args = ["send", "--data", server.dataDir, file(numbered(2))];
  const refused = await cli(args, { cwd, env: { SIGNALBOX_KEY: WRONG_KEY } });
  expect(refused.stderr).toEndWith(
    `: signalbox send --url ${server.url} --data ${server.dataDir} signals.ndjson\n`,
  );
  const { stderr } = await cli(args, { cwd, env: { SIGNALBOX_KEY: key } });
  expect(stderr).toStartWith("signals.ndjson: 2 stored");
});

test("an answer of another program is no success, and is tried again", async () => {
  const { server, key } = await prepare();
  const portal = ["<html>Sign in</html>", '{"id":"1"}', "[]", ""];
  const url = listen((request) => {
    const text = portal.shift();
    return text === undefined ? forward(server.url, request) : new Response(text);
  });
  const { file, send } = sendingTo(url, key);
  const { code, stderr } = await send([file(numbered(1))]);
  expect(stderr).toStartWith(`Waiting for ${url} (200 from another program): 1 signal waiting, `);
  expect(stderr).toContain("signals.ndjson: 1 stored");
  expect(code).toBe(0);
  expect(stored(server.dataDir)).toEqual(once(1));
});

const waitNote = (reason: string, left = "30 signals") =>
  `Waiting for http://127.0.0.1:1 (${reason}): ${left} waiting, trying again`;

test("what send waits for is said once per reason, and every minute while it lasts", async () => {
  const notes: string[] = [];
  const print = { ...printing };
  const replace = (printNote: typeof print.printNote) =>
    mock.module("../../src/cli/print.ts", () => ({ ...print, printNote }));
  await replace((text) => void notes.push(text));
  onCleanup(() => replace(print.printNote));
  Object.defineProperty(process.stderr, "isTTY", { value: false });
  const { startProgress } = await import("../../src/commands/send/progress.ts");
  jest.useFakeTimers();
  onCleanup(() => jest.useRealTimers());
  const progress = await startProgress("http://127.0.0.1:1", 30);
  for (let time = 0; time < 3; time += 1) progress.retry("connection refused");
  progress.retry("503");
  progress.retry("connection refused");
  expect(notes.splice(0)).toEqual([waitNote("connection refused"), waitNote("503")]);
  jest.advanceTimersByTime(59_000);
  progress.retry("connection refused");
  expect(notes).toEqual([]);
  jest.advanceTimersByTime(1_000);
  progress.retry("connection refused");
  jest.advanceTimersByTime(60_000);
  expect(notes.splice(0)).toEqual(Array(2).fill(waitNote("connection refused")));
  progress.add();
  jest.advanceTimersByTime(60_000);
  expect(notes).toEqual([]);
  for (let reason = 0; reason < 100; reason += 1) progress.retry(String(reason));
  expect(notes.splice(0)).toEqual(
    ["0", "1", "2", "3", "4"].map((reason) => waitNote(reason, "29 signals")),
  );
  progress.stop();
  jest.advanceTimersByTime(600_000);
  expect(notes).toEqual([]);
});

describe("one signal from flags", () => {
  const flags = ["--source", "venue_2", "--type", "crypto", "--symbol", "BTC/USDT"];

  test("prints the server's answer", async () => {
    const { server, send } = await prepare();
    const more = ["--side", "open", "--direction", "long", "--price", "1.50", "--quantity", "2"];
    const rest = ["--signal-time", "1790000000000", "--metadata", '{"a": 1.10}'];
    const { code, stdout, stderr } = await send([...flags, ...more, ...rest]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ deduped: false });
    const [, id = ""] = /^client_signal_id (\S+)\n$/.exec(stderr) ?? [];
    expect(id).toMatch(UUID_V7);
    const [row] = query(server.dataDir, "SELECT * FROM signals");
    expect(row).toMatchObject({
      client_signal_id: id,
      direction: "long",
      price: 1.5,
      quantity: 2,
      signal_time: 1_790_000_000_000,
      metadata: '{"a": 1.10}',
    });
    const again = await send([...flags, "--side", "open", "--client-signal-id", id]);
    expect(JSON.parse(again.stdout)).toMatchObject({ deduped: true });
    expect(again.stderr).toContain("It differs in: ");
    const same = await send([...flags, "--side", "close", "--client-signal-id", "same"]);
    const repeated = await send([...flags, "--side", "close", "--client-signal-id", "same"]);
    expect(same.stderr + repeated.stderr).not.toContain("differs");
  });

  test("is validated, with the flags to correct", async () => {
    const { send } = sendingTo("http://127.0.0.1:1", WRONG_KEY);
    const { code, stderr } = await send(["--side", "up", "--price", "abc", "--metadata", "[1]"]);
    expect(stderr).toBe(
      "signalbox: The signal is not valid: --source: required; --type: required; --symbol: required; --side: must be one of: open, close; --price: must be a number; --metadata: must be an object\n",
    );
    expect(code).toBe(2);
    const dry = await send([...flags, "--side", "open", "--dry-run"], {
      env: { SIGNALBOX_KEY: "" },
    });
    expect(dry).toEqual({ code: 0, stdout: "", stderr: "The signal is valid.\n" });
  });

  test("that may be stored is repeated with its id", async () => {
    const url = listen(() => new Response("", { status: 503 }));
    const { send } = sendingTo(url, WRONG_KEY);
    const rest = ["--side", "open", "--client-signal-id", "x y", "--give-up-after", "1s"];
    const { code, stdout, stderr } = await send([...flags, ...rest]);
    expect(stderr).toEndWith("to send it again, add --client-signal-id 'x y'\n");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });
});

test.each([
  ["send nowhere.ndjson", "There is no file nowhere.ndjson: name a file with signals"],
  ["send .", ". is a folder: name a file with signals."],
])("%s is refused, with what to type", async (line, says) => {
  const { send } = sendingTo("http://127.0.0.1:1", WRONG_KEY);
  const { code, stdout, stderr } = await send(line.split(" ").slice(1));
  expect(stderr).toContain(says);
  expect({ isFailure: code > 0, stdout }).toEqual({ isFailure: true, stdout: "" });
});

/** Runs send, and presses Ctrl-C when a text has been shown. */
async function sendOnTerminal(
  place: { cwd: string; env: Record<string, string> },
  name: string,
  at: RegExp | null = null,
): Promise<{ code: number; shown: string }> {
  const child = startOnTerminal(["send", name], place);
  if (at !== null) {
    await child.showed(at);
    child.press(CTRL_C);
  }
  return child.ended();
}

describe("on a terminal", () => {
  const SHOW_CURSOR = "\x1b[?25h";

  test("it shows in one line what it waits for", async () => {
    const port = await freePort();
    const env = { SIGNALBOX_KEY: WRONG_KEY, SIGNALBOX_URL: `http://127.0.0.1:${port}` };
    for (const what of [["signals.ndjson"], ["--source", "venue_2"]]) {
      const cwd = temporaryFolder();
      writeFileSync(join(cwd, "signals.ndjson"), `${JSON.stringify(signal)}\n`);
      const rest = what.length === 1 ? [] : ["--type", "crypto", "--symbol", "A", "--side", "open"];
      const child = startOnTerminal(["send", ...what, ...rest], { cwd, env, cols: 100 });
      const waiting = `Waiting for ${env.SIGNALBOX_URL} (connection refused): 1 signal waiting`;
      await child.showed(new RegExp(RegExp.escape(waiting)));
      child.press(CTRL_C);
      const { code, shown } = await child.ended();
      expect(shown).toMatch(/not sent|is not stored/);
      expect(shown.split("\n").filter((line) => line.includes("Waiting"))).toHaveLength(1);
      expect(shown.lastIndexOf(SHOW_CURSOR)).toBeGreaterThan(shown.lastIndexOf("\x1b[?25l"));
      expect(code).toBe(1);
    }
  });

  test("it shows a progress bar", async () => {
    const place = await prepare();
    const { code, shown } = await sendOnTerminal(place, place.file(numbered(3_000)));
    expect(code).toBe(0);
    expect(shown).toMatch(/send .*% of 3000 signals, \d+\/s/);
    expect(shown).toMatch(/signals.ndjson: 3,000 stored.*\s*$/);
  });

  test.each([
    ["while it validates", /check .* \d\d?%/, /signalbox: Stopped: nothing was sent\.\s*$/],
    ["while it sends", /send .* \d%/, /Stopping after [^]* Resume with the same ids.*\s*$/],
  ])("Ctrl-C %s brings the cursor back", async (_, at, ending) => {
    const place = await prepare();
    const { code, shown } = await sendOnTerminal(place, place.file(numbered(150_000)), at);
    expect(shown).toMatch(ending);
    expect(shown.lastIndexOf(SHOW_CURSOR)).toBeGreaterThan(shown.lastIndexOf("\x1b[?25l"));
    expect(code).toBe(1);
  });
});

test("a body with its id is valid, whatever stands before the first member", async () => {
  const { withId } = await import("../../src/send/body.ts");
  for (const prefix of ["{", " {", "\uFEFF{", "\t{ "]) {
    const text = prefix + JSON.stringify(signal).slice(1);
    const body = withId(new TextEncoder().encode(text), "id");
    expect(parseSignal(body)).toMatchObject({ ...signal, client_signal_id: "id" });
  }
});
