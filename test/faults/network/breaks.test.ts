/** Every client against every break of `test/clients/_breaks.ts`: each signal is stored once and reported as stored, or read once. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type BreakName, breakNames, lastingBreak, startBreaking } from "../../clients/_breaks.ts";
import { makeCertificate, writeCertificate } from "../../kit/certificates.ts";
import { cli, type CliResult, freePort, mintKey, startServe } from "../../kit/cli.ts";
import { listen, onCleanup, post, query, sharedByFile, temporaryFolder } from "../../kit/setup.ts";
import { programWith, type RuntimeName, runtimes, startBot } from "./_bots.ts";
import "../kit/faults.ts";

/** A URL for each name, which is also the symbol that is sent there. */
type Targets = Readonly<Record<string, string>>;

interface Outcome {
  /** Of the stored signal, or null. */
  readonly id: string | null;
  /** If there is no id. */
  readonly mayBeStored?: boolean;
  readonly isRetried?: boolean | null;
  /** What the client says at the end. */
  readonly text?: string;
}

type Outcomes = Record<string, Outcome>;

interface Options {
  readonly targets: Targets;
  readonly key: string;
  /** Two attempts instead of as many as the client makes. */
  readonly isImpatient: boolean;
}

type Client = (options: Options) => Promise<Outcomes>;

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
        return name, {"id": None, "mayBeStored": error.may_be_stored, "isRetried": is_retried, "text": str(error)}
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
import { Signalbox } from "./signalbox.ts";
const { TARGETS, KEY: key, ATTEMPTS } = process.env;
const outcomes = Object.entries(JSON.parse(TARGETS)).map(async ([symbol, url]) => {
  let isRetried = false;
  const box = new Signalbox({ url, key, attempts: Number(ATTEMPTS), onRetry: () => (isRetried = true) });
  try {
    const { id } = await box.send({ source: "venue_2", type: "crypto", symbol, side: "open" });
    return [symbol, { id }];
  } catch ({ mayBeStored, message: text }) {
    return [symbol, { id: null, mayBeStored, isRetried, text }];
  }
});
console.log(JSON.stringify(Object.fromEntries(await Promise.all(outcomes))));
`;

/** A bot that prints JSON. */
const bot = (name: RuntimeName, client: "signalbox" | "feed", text: string): Client => {
  return async ({ targets, key, isImpatient }) => {
    const env = { TARGETS: JSON.stringify(targets), KEY: key, ATTEMPTS: isImpatient ? "2" : "8" };
    const program = programWith(name, client, text);
    const { stdout, stderr } = await startBot(name, program, { ...trust(name), ...env }).ended;
    expect(stdout, stderr).toStartWith("{");
    return JSON.parse(stdout) as Outcomes;
  };
};

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

const curl = readFileSync(resolve(import.meta.dir, "../../../clients/curl/send.sh"), "utf8");

/** Of a process that prints `retried` when it tries again. */
function outcomeOf({ code, stdout, stderr }: CliResult, retried: string): Outcome {
  if (code === 0) return { id: (JSON.parse(stdout) as { id: string }).id };
  const mayBeStored = /may be stored/i.test(stderr);
  return { id: null, mayBeStored, isRetried: stderr.includes(retried), text: stderr };
}

const senders: Record<string, Client> = {
  python: bot("python", "signalbox", python),
  node: bot("node", "signalbox", javascript),
  bun: bot("bun", "signalbox", javascript),
  ...(Bun.which("deno") === null ? {} : { deno: bot("deno", "signalbox", javascript) }),
  curl: ({ targets, key, isImpatient }) =>
    each(targets, async (symbol, url) => {
      const text = curl
        .replace("https://signals.example.com", url)
        .replace("BTC/USDT", symbol.replaceAll("'", "'\\''"))
        .replace("0 1 2 4 8 16 32", isImpatient ? "0 1" : "0 1 1 1");
      const env = { ...trust("curl"), SIGNALBOX_KEY: key };
      const ended = await startBot("curl", { text, client: null }, env).ended;
      return outcomeOf(ended, "No answer yet");
    }),
  "signalbox send": ({ targets, key, isImpatient }) =>
    each(targets, async (symbol, url) => {
      const flags = ["--url", url, "--give-up-after", isImpatient ? "1s" : "1m"];
      const signal = ["--source", "venue_2", "--type", "crypto", "--symbol", symbol];
      const command = ["send", ...flags, ...signal, "--side", "open"];
      const env = { SIGNALBOX_KEY: key };
      const ended = await cli([...command, "--ca", files().certFile], { env });
      return outcomeOf(ended, "trying again");
    }),
};

const pythonReader = `${unknownHost}
import concurrent.futures, json, logging, os
from feed import Feed, FeedError
class Retried(Exception):
    pass
class Handler(logging.Handler):
    def emit(self, record):
        if "attempt 4" in record.getMessage():
            raise Retried
logging.getLogger("signalbox").addHandler(Handler())
def read(target):
    name, url = target
    try:
        for signal in Feed(url, os.environ["KEY"], after=None):
            return name, {"id": signal["id"]}
    except FeedError as error:
        return name, {"id": None, "isRetried": False, "text": str(error)}
    except Retried:
        return name, {"id": None, "isRetried": True}
targets = json.loads(os.environ["TARGETS"])
with concurrent.futures.ThreadPoolExecutor(len(targets)) as pool:
    print(json.dumps(dict(pool.map(read, targets.items()))))
`;

const javascriptReader = `
import { Feed } from "./feed.ts";
const { TARGETS, KEY: key } = process.env;
const outcomes = Object.entries(JSON.parse(TARGETS)).map(async ([name, url]) => {
  const end = new AbortController();
  let retries = 0;
  const onRetry = () => (retries += 1) === 4 && end.abort();
  try {
    for await (const { id } of new Feed({ url, key, after: null, signal: end.signal, onRetry }).signals())
      return [name, { id }];
    return [name, { id: null, isRetried: true }];
  } catch ({ message: text }) {
    return [name, { id: null, isRetried: false, text }];
  }
});
console.log(JSON.stringify(Object.fromEntries(await Promise.all(outcomes))));
`;

const readers: Record<string, Client> = {
  python: bot("python", "feed", pythonReader),
  node: bot("node", "feed", javascriptReader),
  bun: bot("bun", "feed", javascriptReader),
};

const certificate = sharedByFile(() => makeCertificate("private"));
const files = sharedByFile(async () => writeCertificate(temporaryFolder(), certificate()));
const trust = (name: RuntimeName) => ({ [runtimes[name].trust]: files().certFile });
const readPort = sharedByFile(() => freePort());
const server = sharedByFile(() => startServe(["--read-listen", `127.0.0.1:${readPort()}`]));

/** For each break a URL whose first attempt breaks. */
function breaking(target: string): Targets {
  const urls = breakNames.map((name) => [name, startBreaking(name, target, certificate())]);
  return Object.fromEntries(urls) as Record<BreakName, string>;
}

const notFound = () => new Response("no", { status: 404 });
const page = () => new Response("<html>Sign in</html>");

/** Where no signal is reported as stored. */
interface Hopeless {
  readonly url: string;
  readonly mayBeStored?: true;
  /** Whether an attempt is followed by another; null depends on the client. */
  readonly isRetried?: true | null;
  /** What clients in scripts say at the end. */
  readonly says?: RegExp;
}

/** Those that tell plain text in the handshake from plain text after the request. Bun and Node do not. */
const tellingPlainText = ["python", "curl"];

async function hopeless(client: string): Promise<Record<string, Hopeless>> {
  const { cert, key } = certificate();
  const other = Bun.serve({ hostname: "127.0.0.2", port: 0, tls: { cert, key }, fetch: page });
  onCleanup(() => other.stop(true));
  const untrusted = listen(page, await makeCertificate("other"));
  const { trust: variable } = runtimes[client as RuntimeName] ?? { trust: "--ca" };
  return {
    "no server": {
      url: `http://127.0.0.1:${await freePort()}`,
      isRetried: true,
      says: /http:\/\/127\.0\.0\.1:\d+\/v1\/signals.*(refused|ECONNREFUSED|Failed to connect)/i,
    },
    "no host": { url: "https://signals..example", isRetried: true },
    "a captive portal": { url: listen(page), mayBeStored: true, isRetried: true },
    "another program's 404": { url: listen(notFound), mayBeStored: true, isRetried: true },
    // The feed has another address.
    "a refused key": { url: server().url, says: /unauthorized|not_found/ },
    "plain http": {
      url: listen(page).replace("http:", "https:"),
      ...(tellingPlainText.includes(client) ? {} : { mayBeStored: true as const }),
      says: /Is it http or https\?/,
    },
    [lastingBreak]: {
      url: startBreaking(lastingBreak, server().url, certificate()),
      mayBeStored: true,
      isRetried: null,
    },
    "an untrusted certificate": {
      url: untrusted.replace("http:", "https:"),
      says: new RegExp(`For a private certificate, set ${variable}=`),
    },
    "another host name": {
      url: other.url.origin,
      says: /Use a name that the certificate has\.(?![^]*private certificate)/,
    },
  };
}

describe.each(Object.keys(senders))("%s", (name) => {
  const send = senders[name] as Client;

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
    for (const [of, { mayBeStored = false, isRetried = false, says }] of Object.entries(cases)) {
      const { text, ...outcome }: Partial<Outcome> = outcomes[of] ?? {};
      const retried = isRetried ?? outcome.isRetried;
      expect({ of, ...outcome } as unknown).toEqual({
        of,
        id: null,
        mayBeStored,
        isRetried: retried,
      });
      if (says !== undefined && name !== "signalbox send")
        expect([of, text]).toEqual([of, expect.stringMatching(says)]);
      expect(text, "the code once").not.toMatch(/(E[A-Z]{4,}).*\1|Error \[|sbk_/);
    }
  });
});

describe.each(Object.keys(readers))("the feed with %s", (name) => {
  const read = readers[name] as Client;

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
    for (const [of, { isRetried = false, says }] of Object.entries(cases)) {
      const { text, ...outcome }: Partial<Outcome> = outcomes[of] ?? {};
      expect({ of, ...outcome } as unknown).toEqual({ of, id: null, isRetried });
      if (!isRetried && says !== undefined)
        expect([of, text]).toEqual([of, expect.stringMatching(says)]);
    }
  });
});
