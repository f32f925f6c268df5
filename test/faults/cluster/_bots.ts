/** Bots and a reader in Python, which send and read through the balancer. */
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { temporaryFolder, until } from "../../kit/setup.ts";
import type { Servers } from "./_servers.ts";

const BOTS = 12;
const PAUSE_S = 0.1;

const bots = `import logging, os, signal, threading, time
from signalbox import Signalbox, _uuid7
logging.basicConfig(filename="log", format="%(asctime)s %(threadName)s %(message)s")
over = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: over.set())
file = open("stored", "w", buffering=1)

def bot(n):
    client = Signalbox(os.environ["URL"], os.environ["KEY"], attempts=float("inf"))
    while not over.is_set():
        sent = {"source": "venue_1", "type": "crypto", "symbol": f"BOT/{n}", "side": "open"}
        sent["client_signal_id"], began = _uuid7(), time.time()
        stored = client.send(sent)
        times = int(began * 1000), int(time.time() * 1000)
        print(n, sent["client_signal_id"], stored["id"], *times, file=file)
        over.wait(${PAUSE_S})

threads = [threading.Thread(target=bot, args=(n,)) for n in range(${BOTS})]
for one in threads: one.start()
for one in threads: one.join()
`;

const reader = `import logging, os
from feed import Feed
logging.basicConfig(filename="reader.log", format="%(asctime)s %(message)s")
file = open("read", "w", buffering=1)
for signal in Feed(os.environ["FEED"], os.environ["READ_KEY"], after=None):
    print(signal["id"], file=file)
`;

/** An acknowledged signal. Times: epoch milliseconds, when the bot had it, and when it had the answer. */
export interface Sent {
  readonly bot: string;
  readonly clientId: string;
  readonly id: string;
  readonly began: number;
  readonly ended: number;
}

export interface Bots {
  readonly sent: () => Sent[];
  /** The ids that the reader has got, in its order. */
  readonly read: () => string[];
  /** Resolves when every bot has got an answer after this moment: some wait for long before they try again. */
  readonly allSince: (moment: number) => Promise<void>;
  /** Resolves when each bot has the answer to its last signal. */
  readonly stop: () => Promise<void>;
  /** What both clients have logged. */
  readonly output: () => string;
}

export async function startBots({ balancer, env }: Servers): Promise<Bots> {
  const folder = temporaryFolder();
  const clients = resolve(import.meta.dir, "../../../clients/python");
  for (const name of ["signalbox.py", "feed.py"]) cpSync(join(clients, name), join(folder, name));
  writeFileSync(join(folder, "bots.py"), bots);
  writeFileSync(join(folder, "reader.py"), reader);
  const start = (file: string) =>
    balancer.start(["env", "-C", folder, "python3", join(folder, file)], env);
  const [sending, reading] = [start("bots.py"), start("reader.py")];
  const lines = (name: string): string[] => {
    const path = join(folder, name);
    // What follows the last line break is not written completely.
    return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
  };
  const one = {
    sent: () =>
      lines("stored").map((line) => {
        const [bot = "", clientId = "", id = "", began, ended] = line.split(" ");
        return { bot, clientId, id, began: Number(began), ended: Number(ended) };
      }),
    read: () => lines("read"),
    allSince: (moment: number) =>
      until(() => {
        const recent = one.sent().filter(({ ended }) => ended > moment);
        return new Set(recent.map(({ bot }) => bot)).size === BOTS;
      }, 200),
    async stop() {
      sending.kill("SIGTERM");
      await sending.exited;
    },
    output: () => sending.output() + reading.output(),
  };
  await until(() => one.read().length > 0, 100);
  return one;
}

/** The longest times in which no bot got an answer, and that one bot waited for its answer. */
export interface Downtime {
  readonly all: number;
  readonly one: number;
}

export function downtimeIn(sent: readonly Sent[], since: number): Downtime {
  const recent = sent.filter(({ ended }) => ended >= since).toSorted((a, b) => a.ended - b.ended);
  let last = since;
  let [all, one] = [0, 0];
  for (const { began, ended } of recent) {
    all = Math.max(all, ended - last);
    one = Math.max(one, ended - began);
    last = ended;
  }
  return { all, one };
}
