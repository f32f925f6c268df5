/** The clients of `clients/` and their examples, as the console shows them, in the runtimes of each language. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { apiDocument } from "../../kit/openapi.ts";
import { snippets } from "../../../src/console/pages/start/snippets.ts";
import { mintKey, startServe } from "../../kit/cli.ts";
import { startOnTerminal } from "../../kit/terminal.ts";
import { STORM_ATTEMPTS, STORM_SIGNALS, STORM_TIMEOUT_MS, storm } from "../../clients/_flaky.ts";
import { startProxy } from "../../feed/_feed.ts";
import { clearSignals, listen, query, sharedByFile, temporaryFolder } from "../../kit/setup.ts";
import { shownIn, startConsole } from "../../console/_console.ts";
import { type Program, type RuntimeName, runtimes, startBot } from "./_bots.ts";
import "../kit/faults.ts";

/** Runs a program to a good end, and returns its output. */
async function runWell(
  name: RuntimeName,
  program: Program,
  env: Record<string, string>,
): Promise<string> {
  const { code, output } = await startBot(name, program, env).ended;
  expect({ code, output }).toEqual({ code: 0, output });
  return output;
}

function programFor(name: RuntimeName, url: string): Program {
  const { language } = runtimes[name];
  const found = snippets(url).find(({ id }) => id === language);
  if (found === undefined) throw new Error(`There is no snippet for ${language}`);
  return found;
}

async function startServer(...args: string[]) {
  const server = await startServe(args);
  const { key } = await mintKey(server.dataDir);
  return { ...server, env: { SIGNALBOX_KEY: key } };
}

/** For all tests that do not stop it. */
const runningServer = sharedByFile(() => startServer());
const anyKey = { SIGNALBOX_KEY: "sbk_x" };
const names = ["curl", "python", "bun", "node", "tsx"] as const;

test("the page for a new desk shows them, with the address of the server", async () => {
  const app = await startConsole();
  const { visitor } = await app.signUp("alpha", "ada@example.com");
  const { text } = await visitor.get("/start");
  for (const name of names) {
    const { language } = runtimes[name];
    const program = programFor(name, app.apiUrl);
    expect(shownIn(text, `snippet-${language}`).trim()).toBe(program.text.trim());
    if (program.client === null) continue;
    expect(text).toContain(program.client.file);
    expect(shownIn(text, `client-${language}`).trim()).toBe(program.client.text.trim());
  }
});

test("--quickstart prints a command that stores a signal, and once only", async () => {
  const dataDir = join(temporaryFolder(), "data");
  const server = startOnTerminal(
    ["serve", "--quickstart", "--listen", "127.0.0.1:0", "--data", dataDir],
    { cols: 400 },
  );
  const shown = (await server.showed(/takes signals at/)).replaceAll("\r", "");
  const [, command = ""] = /( curl .*?\nEND\n)/s.exec(shown) ?? [];
  const first = (await Bun.$`sh -c ${command}`.json()) as { id: string; deduped: boolean };
  const { id } = first;
  expect(first.deduped).toBe(false);
  expect(await Bun.$`sh -c ${command}`.json()).toEqual({ id, deduped: true });
  expect(query(dataDir, "SELECT id FROM signals")).toEqual([{ id }]);
});

test("curl: lets no proxy get a key that is sent over http", async () => {
  const { url, env } = runningServer();
  const proxy = startProxy();
  const output = await runWell("curl", programFor("curl", url), { ...env, ...proxy.env });
  expect(output).toMatch(/deduped\W+false/);
  expect(proxy.asked).toEqual([]);
});

test("curl: says that a signal may be stored if an earlier attempt had no clear answer", async () => {
  const answers = [unavailable(), Response.json({ error: "unauthorized" }, { status: 401 })];
  const url = listen(() => answers.shift() ?? unavailable());
  const { code, output } = await startBot("curl", programFor("curl", url), anyKey).ended;
  expect(output).toMatch(/No retry can help: .* 401 It may be stored: send \S+ again\.\n$/);
  expect(code).toBe(1);
});

test.each(names)("%s: stores one signal, with an id that begins with the time", async (name) => {
  const { url, env, dataDir } = runningServer();
  clearSignals(dataDir);
  const output = await runWell(name, programFor(name, url), env);
  expect(output).toMatch(/deduped\W+false/i);
  expect(output).not.toContain(env.SIGNALBOX_KEY);
  const [row] = query<{ id: string }>(dataDir, "SELECT client_signal_id AS id FROM signals");
  expect(row?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i);
  const time = parseInt(String(row?.id).replaceAll("-", "").slice(0, 12), 16);
  expect(Math.abs(Date.now() - time)).toBeLessThan(100_000);
});

// tsx and Bun run what Node runs.
describe.each(["curl", "python", "node"] as const)("%s", (name) => {
  test.each([
    ["a date", () => new Date(Date.now() + 2_000).toUTCString()],
    ["neither seconds nor a date", () => "soon"],
  ])("tries again after a 503 whose Retry-After is %s", async (what, retryAfter) => {
    const times: number[] = [];
    const url = listen(() => {
      times.push(Date.now());
      return times.length === 1
        ? unavailable({ "Retry-After": retryAfter() })
        : Response.json({ id: "01M0", received_at: 1, deduped: false }, { status: 201 });
    });
    await runWell(name, programFor(name, url), anyKey);
    expect(times).toHaveLength(2);
    // HTTP dates are whole seconds; curl's program has waits of its own.
    const waitedMs = (times[1] ?? 0) - (times[0] ?? 0);
    if (what === "a date" && name !== "curl") expect(waitedMs).toBeGreaterThan(900);
  });

  test.each([
    ["a signal that is not valid", '""', "validation_failed"],
    ["a key that is unknown", '"BTC/USDT"', "unauthorized"],
  ])("stops at %s, and shows the answer", async (_what, symbol, says) => {
    const { url, requests } = inFrontOf(runningServer().url);
    const { text, client } = programFor(name, url);
    const program = { text: text.replace('"BTC/USDT"', symbol), client };
    const unknown = { SIGNALBOX_KEY: `sbk_${"0a".repeat(32)}` };
    const env = says === "unauthorized" ? unknown : runningServer().env;
    const { code, output } = await startBot(name, program, env).ended;
    expect(output).toContain(says);
    expect(output).not.toContain("sbk_");
    expect(code).not.toBe(0);
    expect(requests()).toBe(1);
  });

  test("without a key it says how to set it, and sends nothing", async () => {
    const { url, requests } = inFrontOf(runningServer().url);
    for (const env of [{}, { SIGNALBOX_KEY: "" }]) {
      const { code, output } = await startBot(name, programFor(name, url), env).ended;
      expect(output).toContain(
        "Set SIGNALBOX_KEY: stty -echo; read -r SIGNALBOX_KEY; stty echo; export SIGNALBOX_KEY\n",
      );
      expect(code).toBe(1);
    }
    expect(requests()).toBe(0);
  });

  test("waits for a server that starts again", async () => {
    const { url, env, dataDir, kill, exited } = await startServer();
    kill("SIGTERM");
    expect(await exited).toBe(0);
    const { ended, printed } = startBot(name, programFor(name, url), env);
    await printed(/refused|ECONNREFUSED|Failed to connect/i);
    await startServe([], { dataDir, listen: new URL(url).host });
    const { code, output } = await ended;
    expect({ code, output }).toEqual({ code: 0, output });
    expect(output).toMatch(/deduped\W+false/i);
  });
});

/** Sends the signals of a storm at once, and prints their ids. */
const stormPrograms = {
  python: `
import concurrent.futures, json, logging, os
from signalbox import Signalbox
logging.disable()
signalbox = Signalbox(os.environ["URL"], os.environ["KEY"], attempts=${STORM_ATTEMPTS}, timeout=${STORM_TIMEOUT_MS / 1_000})
def send(number):
    return signalbox.send({"source": "venue_2", "type": "crypto", "symbol": f"S{number}", "side": "open"})["id"]
with concurrent.futures.ThreadPoolExecutor(${STORM_SIGNALS}) as pool:
    print(json.dumps(list(pool.map(send, range(${STORM_SIGNALS})))))
`,
  node: `
import { Signalbox } from "./signalbox.ts";
const { URL: url, KEY: key } = process.env;
const options = { attempts: ${STORM_ATTEMPTS}, timeoutMs: ${STORM_TIMEOUT_MS}, onRetry: () => {} };
const signalbox = new Signalbox({ url, key, ...options });
const send = async (number) =>
  (await signalbox.send({ source: "venue_2", type: "crypto", symbol: \`S\${number}\`, side: "open" })).id;
const ids = Promise.all(Array.from({ length: ${STORM_SIGNALS} }, (_, number) => send(number)));
ids.then((all) => console.log(JSON.stringify(all)));
`,
};

test.each(["python", "node"] as const)(
  "%s stores each signal once, whatever fails, and while the server is killed and stopped",
  async (name) => {
    const { client } = programFor(name, "http://127.0.0.1");
    const { rows, repeats } = await storm(async (url, key) => {
      const program = { text: stormPrograms[name], client };
      return JSON.parse(await runWell(name, program, { URL: url, KEY: key })) as string[];
    });
    expect(rows.filter((count) => count !== 1)).toEqual([]);
    expect(repeats).toBeGreaterThan(STORM_SIGNALS / 2);
  },
);

/** Runs Python with the client imported; returns the JSON that it prints. */
async function python(code: string, env: Record<string, string> = {}): Promise<unknown> {
  const text = `import json, typing, signalbox\nfrom signalbox import *\n${code}`;
  return JSON.parse(await runWell("python", { ...programFor("python", "https://x"), text }, env));
}

const right =
  '{"source": "venue_2", "type": "crypto", "symbol": "X", "side": "open", "client_signal_id": "mine"}';

/** Sends this signal, and prints what the error says. */
function failing(signal: string, options = ""): string {
  return `
import os
try:
    Signalbox(os.environ["URL"], os.environ["KEY"]${options}).send(${signal})
except SignalboxError as error:
    print(json.dumps({"status": error.status, "code": error.code, "fields": error.fields, "stored": error.may_be_stored, "id": error.signal["client_signal_id"], "text": str(error)}))`;
}

/** The error if every answer has this status. */
function failWith(status: number): Promise<unknown> {
  const url = listen(() => Response.json({ error: "rate_limited" }, { status }));
  return python(failing(right, ", attempts=1"), { URL: url, KEY: "sbk_x" });
}

describe("Python's client", () => {
  test("has the types of the OpenAPI document", async () => {
    const { schemas } = apiDocument["components"] as {
      schemas: Record<string, { properties: Record<string, Property>; required: string[] }>;
    };
    const types = await python(`
def typed(name):
    return list(typing.get_args(name)) or getattr(name, "__name__", str(name))
def described(kind):
    hints = typing.get_type_hints(kind)
    return {name: [typing.get_origin(hint).__name__ if typing.get_origin(hint) in (dict, list) else typed(hint), name in kind.__required_keys__] for name, hint in hints.items()}
print(json.dumps({"Signal": described(Signal), "Stored": described(Stored)}))`);
    const inPython = {
      string: "str",
      number: "float",
      integer: "int",
      object: "dict",
      boolean: "bool",
    };
    const documented = (schema: string, required: readonly string[]) =>
      Object.fromEntries(
        Object.entries(schemas[schema]?.properties ?? {}).map(([name, property]) => [
          name,
          [property.enum ?? inPython[property.type], required.includes(name)],
        ]),
      );
    expect(types).toEqual({
      Signal: documented("Signal", schemas["Signal"]?.required ?? []),
      Stored: {
        // A duplicate's answer has fewer members.
        ...documented("Stored", schemas["Duplicate"]?.required ?? []),
        // From a header.
        differs: ["list", true],
      },
    });
  });

  interface Property {
    readonly type: "string" | "number" | "integer" | "object" | "boolean";
    readonly enum?: readonly string[];
  }

  test("has the refused fields in its error, and sends the caller's client_signal_id", async () => {
    const { url, env, dataDir } = runningServer();
    const settings = { URL: url, KEY: env.SIGNALBOX_KEY };
    const wrong = '{"source": "venue_2", "type": "crypto", "symbol": "", "side": "up"}';
    expect(await python(failing(wrong), settings)).toMatchObject({
      status: 422,
      code: "validation_failed",
      fields: { symbol: "must have 1 to 512 characters", side: "must be one of: open, close" },
      stored: false,
    });
    const sent = await python(
      `import os\nbox = Signalbox(os.environ["URL"] + "/v1/signals", os.environ["KEY"])\nprint(json.dumps([box.send(${right}), box.send(${right}), box.send({**${right}, "price": 1, "side": "close"})]))`,
      settings,
    );
    const [{ id }] = query<{ id: string }>(
      dataDir,
      "SELECT id FROM signals WHERE client_signal_id = 'mine'",
    ) as [{ id: string }];
    expect(sent).toEqual([
      { id, received_at: expect.any(Number), deduped: false, differs: [] },
      { id, deduped: true, differs: [] },
      { id, deduped: true, differs: ["side", "price"] },
    ]);
  });

  test("says whether the signal may be stored, and under which id to send it again", async () => {
    expect(await failWith(429)).toMatchObject({
      status: 429,
      stored: false,
      text: expect.stringMatching(
        /\nGave up: for a longer downtime, set attempts. It is not stored: send it again with client_signal_id mine\.$/,
      ),
    });
    expect(await failWith(503)).toMatchObject({
      status: 503,
      stored: true,
      text: expect.stringContaining("send it again with client_signal_id mine."),
    });
  });

  test("lets no proxy get a key that is sent over http", async () => {
    const { url, env, dataDir } = runningServer();
    clearSignals(dataDir);
    const proxy = startProxy();
    const sent = `import os\nprint(json.dumps(Signalbox(os.environ["URL"], os.environ["KEY"]).send(${right})))`;
    const settings = { URL: url, KEY: env.SIGNALBOX_KEY, ...proxy.env };
    expect(await python(sent, settings)).toMatchObject({ deduped: false });
    expect(proxy.asked).toEqual([]);
  });

  test("follows no redirect, so that no other server gets the key", async () => {
    let requests = 0;
    const other = listen(() => Response.json({ id: `${(requests += 1)}` }));
    for (const status of [302, 307]) {
      const url = listen(() => Response.redirect(other, status));
      const sent = python(failing(right, ", attempts=1"), { URL: url, KEY: "sbk_x" });
      expect(await sent).toMatchObject({ status, stored: true });
    }
    expect(requests).toBe(0);
  });

  test("refuses what JSON cannot contain by its field, and makes an id in place of None", async () => {
    const url = listen(async (request) =>
      Response.json({ id: await request.text(), deduped: false }),
    );
    const wrong = `{**${right}, "price": __import__("decimal").Decimal(1), "metadata": {"stop": [float("nan")]}}`;
    expect(await python(failing(wrong), { URL: url, KEY: "sbk_x" })).toEqual({
      status: null,
      code: "validation_failed",
      fields: {
        price: "Object of type Decimal is not JSON serializable",
        metadata: expect.stringContaining("not JSON compliant"),
      },
      stored: false,
      id: "mine",
      text: expect.stringContaining("Not sent. price: Object of type Decimal"),
    });
    const sent = `import os\nprint(Signalbox(os.environ["URL"], "sbk_x").send({**${right}, "client_signal_id": None})["id"])`;
    expect(await python(sent, { URL: url })).toMatchObject({
      client_signal_id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
    });
  });

  test("refuses an address in the clear, and a key with a line break", async () => {
    const refused = await python(`
def refusal(*values):
    try:
        Signalbox(*values)
    except ValueError as error:
        return str(error)
print(json.dumps([refusal("http://signals.example.com", "sbk_x"), refusal("https://signals.example.com", "sbk_x"), refusal("localhost:8080", "sbk_x"), refusal("https://x", "sbk_x\\n")]))`);
    expect(refused).toEqual([
      "http://signals.example.com: use https, so that nobody on the way can read the key.",
      "https://signals.example.com: change the URL to your server's address.",
      "localhost:8080: write http://127.0.0.1:8080, or https:// and your server's name.",
      "The key is empty, or has a space or a line break in it.",
    ]);
  });
});

const unavailable = (headers = {}) => new Response("{}", { status: 503, headers });

/** Hands requests on to a server, and counts them. */
function inFrontOf(target: string) {
  let requests = 0;
  const url = listen(async (request) => {
    requests += 1;
    const { method, headers } = request;
    const body = await request.text();
    const answer = await fetch(`${target}/v1/signals`, { method, headers, body });
    return new Response(await answer.text(), { status: answer.status });
  });
  return { url, requests: () => requests };
}
