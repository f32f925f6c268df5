/** Every client against every break of `test/clients/_breaks.ts`: each signal is stored once and reported as stored, or read once. */
import { describe, expect, test } from "bun:test";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type BreakName, breakNames, lastingBreak, startBreaking } from "../../clients/_breaks.ts";
import { makeCertificate, writeCertificate } from "../../kit/certificates.ts";
import { cli, freePort, mintKey, startServe } from "../../kit/cli.ts";
import { listen, onCleanup, post, query, sharedByFile, temporaryFolder } from "../../kit/setup.ts";
import "../kit/faults.ts";

/** A URL for each name, which is also the symbol that is sent there. */
type Targets = Readonly<Record<string, string>>;

interface Outcome {
  /** Of the stored signal, or null. */
  readonly id: string | null;
  /** If there is no id. */
  readonly mayBeStored?: boolean;
  readonly isRetried?: boolean | null;
}

type Outcomes = Record<string, Outcome>;

interface Options {
  readonly targets: Targets;
  readonly key: string;
  /** Two attempts instead of as many as the client makes. */
  readonly isImpatient: boolean;
}

const clients = resolve(import.meta.dir, "../../../clients");
const attemptsFor = (isImpatient: boolean) => (isImpatient ? 2 : 8);

/** The name is unknown, as in Node and Bun; Python refuses it before it asks. */
const unknownHost = `
import socket
resolve = socket.getaddrinfo
def getaddrinfo(host, *rest, **more):
    if host == "signals..example":
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return resolve(host, *rest, **more)
socket.getaddrinfo = getaddrinfo
`;

const python = `${unknownHost}
import concurrent.futures, json, logging, os
from signalbox import Signalbox, SignalboxError
def send(target):
    name, url = target
    box = Signalbox(url, os.environ["KEY"], attempts=int(os.environ["ATTEMPTS"]))
    try:
        stored = box.send({"source": "venue_2", "type": "crypto", "symbol": name, "side": "open"})
        return name, {"id": stored["id"]}
    except SignalboxError as error:
        is_retried = "attempt" in handler.seen.get(url, "")
        return name, {"id": None, "mayBeStored": error.may_be_stored, "isRetried": is_retried}
class Handler(logging.Handler):
    seen = {}
    def emit(self, record):
        text = record.getMessage()
        self.seen[text.split(": ")[1].split("/v1")[0]] = text
handler = Handler()
logging.getLogger("signalbox").addHandler(handler)
targets = json.loads(os.environ["TARGETS"])
with concurrent.futures.ThreadPoolExecutor(len(targets)) as pool:
    print(json.dumps(dict(pool.map(send, targets.items()))))
`;

const javascript = `
import { Signalbox } from "./signalbox.mjs";
const { TARGETS, KEY: key, ATTEMPTS } = process.env;
const outcomes = Object.entries(JSON.parse(TARGETS)).map(async ([symbol, url]) => {
  let isRetried = false;
  const box = new Signalbox({ url, key, attempts: Number(ATTEMPTS), onRetry: () => (isRetried = true) });
  try {
    const { id } = await box.send({ source: "venue_2", type: "crypto", symbol, side: "open" });
    return [symbol, { id }];
  } catch ({ mayBeStored }) {
    return [symbol, { id: null, mayBeStored, isRetried }];
  }
});
console.log(JSON.stringify(Object.fromEntries(await Promise.all(outcomes))));
`;

/** A folder with a client, and a program that uses it. */
function folderWith(client: string, program: string): string {
  const folder = temporaryFolder();
  const isPython = client.endsWith(".py");
  const source = join(clients, isPython ? "python" : "typescript", client);
  if (isPython) cpSync(source, join(folder, client));
  else {
    const plain = new Bun.Transpiler({ loader: "ts" }).transformSync(readFileSync(source, "utf8"));
    writeFileSync(join(folder, client.replace(".ts", ".mjs")), plain);
  }
  writeFileSync(join(folder, isPython ? "bot.py" : "bot.mjs"), program);
  return folder;
}

/** Runs a program to its end. */
async function run(command: readonly string[], cwd: string, env: Record<string, string>) {
  const child = Bun.spawn([...command], {
    cwd,
    env: { PATH: process.env["PATH"], HOME: cwd, ...trust(), ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 100_000,
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, stdout, stderr };
}

/** Runs a bot that prints JSON. */
async function runBot(command: readonly string[], folder: string, env: Record<string, string>) {
  const { stdout, stderr } = await run(command, folder, env);
  expect(stdout, stderr).toStartWith("{");
  return JSON.parse(stdout) as Outcomes;
}

function bot(command: readonly string[], client: string, program: string) {
  return ({ targets, key, isImpatient }: Options) =>
    runBot(command, folderWith(client, program), {
      TARGETS: JSON.stringify(targets),
      KEY: key,
      ATTEMPTS: String(attemptsFor(isImpatient)),
    });
}

const PROCESSES = 4;

/** One process per signal. */
async function each(targets: Targets, send: (symbol: string, url: string) => Promise<Outcome>) {
  const outcomes: Outcomes = {};
  const left = Object.entries(targets).values();
  const sendNext = async (): Promise<void> => {
    for (const [symbol, url] of left) outcomes[symbol] = await send(symbol, url);
  };
  await Promise.all(Array.from({ length: PROCESSES }, sendNext));
  return outcomes;
}

const senders: Record<string, (options: Options) => Promise<Outcomes>> = {
  python: bot(["python3", "bot.py"], "signalbox.py", python),
  node: bot(["node", "bot.mjs"], "signalbox.ts", javascript),
  bun: bot([process.execPath, "bot.mjs"], "signalbox.ts", javascript),
  ...(Bun.which("deno") === null
    ? {}
    : { deno: bot(["deno", "run", "-A", "bot.mjs"], "signalbox.ts", javascript) }),
  curl: ({ targets, key, isImpatient }) =>
    each(targets, async (symbol, url) => {
      const text = readFileSync(join(clients, "curl/send.sh"), "utf8")
        .replace("https://signals.example.com", url)
        .replace("BTC/USDT", symbol.replaceAll("'", "'\\''"))
        .replace("0 1 2 4 8 16 32", isImpatient ? "0 1" : "0 1 1 1");
      const folder = temporaryFolder();
      writeFileSync(join(folder, "send.sh"), text);
      const { code, stdout, stderr } = await run(["sh", "send.sh"], folder, { SIGNALBOX_KEY: key });
      if (code === 0) return { id: (JSON.parse(stdout) as { id: string }).id };
      const isRetried = stderr.includes("No answer yet");
      return { id: null, mayBeStored: /may be stored/i.test(stderr), isRetried };
    }),
  "signalbox send": ({ targets, key, isImpatient }) =>
    each(targets, async (symbol, url) => {
      const flags = ["--url", url, "--give-up-after", isImpatient ? "1s" : "1m"];
      const signal = ["--source", "venue_2", "--type", "crypto", "--symbol", symbol];
      const command = ["send", ...flags, ...signal, "--side", "open"];
      const { code, stdout, stderr } = await cli([...command, "--ca", files().certFile], {
        env: { SIGNALBOX_KEY: key },
      });
      if (code === 0) return { id: (JSON.parse(stdout) as { id: string }).id };
      const isRetried = stderr.includes("trying again");
      return { id: null, mayBeStored: /may be stored/i.test(stderr), isRetried };
    }),
};

const pythonReader = `${unknownHost}
import concurrent.futures, json, logging, os
from feed import Feed, FeedError
class Retried(Exception):
    pass
class Handler(logging.Handler):
    def emit(self, record):
        if "attempt 3" in record.getMessage():
            raise Retried
logging.getLogger("signalbox").addHandler(Handler())
def read(target):
    name, url = target
    try:
        for signal in Feed(url, os.environ["KEY"], after=None):
            return name, {"id": signal["id"]}
    except FeedError as error:
        return name, {"id": None, "isRetried": False}
    except Retried:
        return name, {"id": None, "isRetried": True}
targets = json.loads(os.environ["TARGETS"])
with concurrent.futures.ThreadPoolExecutor(len(targets)) as pool:
    print(json.dumps(dict(pool.map(read, targets.items()))))
`;

const javascriptReader = `
import { Feed } from "./feed.mjs";
const { TARGETS, KEY: key } = process.env;
const outcomes = Object.entries(JSON.parse(TARGETS)).map(async ([name, url]) => {
  const end = new AbortController();
  let retries = 0;
  const onRetry = () => (retries += 1) === 3 && end.abort();
  try {
    for await (const { id } of new Feed({ url, key, after: null, signal: end.signal, onRetry }).signals())
      return [name, { id }];
    return [name, { id: null, isRetried: true }];
  } catch {
    return [name, { id: null, isRetried: false }];
  }
});
console.log(JSON.stringify(Object.fromEntries(await Promise.all(outcomes))));
`;

const readers: Record<string, (options: Options) => Promise<Outcomes>> = {
  python: bot(["python3", "bot.py"], "feed.py", pythonReader),
  node: bot(["node", "bot.mjs"], "feed.ts", javascriptReader),
  bun: bot([process.execPath, "bot.mjs"], "feed.ts", javascriptReader),
};

const certificate = sharedByFile(() => makeCertificate("private"));
const files = sharedByFile(async () => writeCertificate(temporaryFolder(), certificate()));
const trust = () => ({
  NODE_EXTRA_CA_CERTS: files().certFile,
  SSL_CERT_FILE: files().certFile,
  CURL_CA_BUNDLE: files().certFile,
  DENO_CERT: files().certFile,
});
const readPort = sharedByFile(() => freePort());
const server = sharedByFile(() => startServe(["--read-listen", `127.0.0.1:${readPort()}`]));

/** For each break a URL whose first attempt breaks. */
function breaking(target: string): Targets {
  const urls = breakNames.map((name) => [name, startBreaking(name, target, certificate())]);
  return Object.fromEntries(urls) as Record<BreakName, string>;
}

const page = () => new Response("<html>Sign in</html>");

/** Where no signal is reported as stored, and whether it may be, and whether an attempt is followed by another. */
interface Hopeless {
  readonly url: string;
  readonly mayBeStored: boolean;
  /** Null depends on the client. */
  readonly isRetried: boolean | null;
}

/** Those that tell plain text in the handshake from plain text after the request. Bun and Node do not. */
const tellingPlainText = ["python", "curl"];

async function hopeless(client: string): Promise<Record<string, Hopeless>> {
  const { cert, key } = certificate();
  const other = Bun.serve({ hostname: "127.0.0.2", port: 0, tls: { cert, key }, fetch: page });
  onCleanup(() => other.stop(true));
  return {
    "no server": {
      url: `http://127.0.0.1:${await freePort()}`,
      mayBeStored: false,
      isRetried: true,
    },
    "no host": { url: "https://signals..example", mayBeStored: false, isRetried: true },
    "a captive portal": { url: listen(page), mayBeStored: true, isRetried: true },
    "another program's 404": {
      url: listen(() => new Response("no", { status: 404 })),
      mayBeStored: true,
      isRetried: true,
    },
    "a refused key": { url: server().url, mayBeStored: false, isRetried: false },
    "plain http": {
      url: listen(page).replace("http:", "https:"),
      mayBeStored: !tellingPlainText.includes(client),
      isRetried: false,
    },
    [lastingBreak]: {
      url: startBreaking(lastingBreak, server().url, certificate()),
      mayBeStored: true,
      isRetried: null,
    },
    "an untrusted certificate": {
      url: listen(page, await makeCertificate("other")).replace("http:", "https:"),
      mayBeStored: false,
      isRetried: false,
    },
    "another host name": {
      url: other.url.href.replace(/\/$/, ""),
      mayBeStored: false,
      isRetried: false,
    },
  };
}

describe.each(Object.keys(senders))("%s", (name) => {
  const send = senders[name] as (options: Options) => Promise<Outcomes>;

  test("stores each signal once and reports it as stored, whatever breaks", async () => {
    const { dataDir, url } = server();
    const desk = name.replace(" ", "-");
    const { key } = await mintKey(dataDir, desk);
    const outcomes = await send({ targets: breaking(url), key, isImpatient: false });
    const stored = query<{ symbol: string; ids: string }>(
      dataDir,
      "SELECT symbol, group_concat(signals.id) AS ids FROM signals JOIN desks ON desks.id = desk_id WHERE name = ? GROUP BY symbol",
      desk,
    );
    const expected = Object.fromEntries(stored.map(({ symbol, ids }) => [symbol, { id: ids }]));
    expect(Object.keys(expected).toSorted()).toEqual(breakNames.toSorted());
    expect(outcomes).toEqual(expected);
  });

  test("says what is not stored, and tries again unless no handshake can succeed", async () => {
    const cases = await hopeless(name);
    const targets = Object.fromEntries(Object.entries(cases).map(([of, { url }]) => [of, url]));
    const key = `sbk_${"0a".repeat(32)}`;
    const outcomes = await send({ targets, key, isImpatient: true });
    for (const [of, { mayBeStored, isRetried }] of Object.entries(cases)) {
      const outcome = { of, ...outcomes[of] };
      expect(outcome as unknown).toEqual({
        of,
        id: null,
        mayBeStored,
        isRetried: isRetried ?? outcome.isRetried,
      });
    }
  });
});

describe.each(Object.keys(readers))("the feed with %s", (name) => {
  const read = readers[name] as (options: Options) => Promise<Outcomes>;

  test("is read on after every break, and ends only where no handshake can succeed", async () => {
    const { dataDir, url } = server();
    const feed = `http://127.0.0.1:${readPort()}`;
    const desk = `read-by-${name}`;
    const sender = await mintKey(dataDir, desk);
    const { body } = await post(url, sender.key);
    const minted = await cli(["key", "mint", "--read", "--desk", desk, "--data", dataDir]);
    const { [lastingBreak]: _, ...cases } = await hopeless(name);
    const urls = Object.entries(cases).map(([of, { url: at }]) => [of, at] as const);
    const targets = { ...breaking(feed), ...(Object.fromEntries(urls) as Targets) };
    const outcomes = await read({ targets, key: minted.stdout.trim(), isImpatient: false });
    for (const of of breakNames)
      expect({ of, ...outcomes[of] }).toEqual({ of, id: String(body["id"]) });
    for (const [of, { isRetried }] of Object.entries(cases)) {
      expect({ of, ...outcomes[of] }).toEqual({ of, id: null, isRetried });
    }
  });
});
