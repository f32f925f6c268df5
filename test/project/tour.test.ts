/** docs/tour.md shows what the commands print. After a change that is wanted, `bun run tour` writes it. */
import { expect, test } from "bun:test";
import { buildExecutable } from "../kit/executable.ts";
import { look, run, start, type Step, writeTour } from "./_tour.ts";

const FILE = "docs/tour.md";

const NVDA =
  "signalbox send --key-file key.txt --source venue_3 --type stock --symbol NVDA --side open --client-signal-id nvda-1";

const steps: readonly Step[] = [
  `# A day with Signalbox

This page is for people who want to see Signalbox at work: a desk's day, from the first signal to a restored backup, with
every command and what it shows. The commands ran in a clone of this repository, in this order. Only keys, ids, times and
counts are examples.`,

  `## Install

\`bun run build\` makes \`dist/signalbox\`, which has no dependencies. Put it in a folder of the \`PATH\`:`,
  run("install -D -m 755 dist/signalbox ~/.local/bin/signalbox\nsignalbox version"),

  `## The first signal

Start the server. It stores everything in \`./data\`.`,
  start("server", "signalbox serve --quickstart"),
  look("server", /manage their keys at .*\r/),
  "In a second terminal, paste the command that it printed:",
  run((page) => latest(page, /^ curl [^]*?\nEND$/gm).trim()),
  "Paste it again, like a bot that got no answer and retries. It gets the same id, and nothing is stored:",
  run((page) => latest(page, /^ ?curl [^]*?\nEND$/gm).trim()),

  `## A desk and its first member

The operator creates the desk \`alpha\`, and a link with which Bob gets into the console:`,
  run("signalbox desk create alpha"),
  run("signalbox member invite alpha bob@example.com"),
  "Bob can create keys there. This time the operator does it, for his bot:",
  run("(umask 077; signalbox key mint --desk alpha --label bot-7 > key.txt)"),
  "Does everything work?",
  run("signalbox status"),

  `## A bot that sends wrong fields

The bot's first request has six mistakes. One answer names them all:`,
  run(
    post({
      source: "venue_4",
      type: "crypto",
      side: "buy",
      price: "3412.5",
      qty: 2,
      clientSignalId: "eth-1",
    }),
  ),
  "The operator sees them in the server's log, with the names of known fields but never their values:",
  look("server", /rejected.*\r/),
  "The bot is corrected:",
  run(
    post({
      source: "venue_2",
      type: "crypto",
      symbol: "ETH/USDT",
      side: "open",
      price: 3412.5,
      quantity: 2,
      client_signal_id: "eth-1",
    }),
  ),
  `Yesterday's signals are in a file. \`signalbox send\` checks the whole file before it sends anything, and writes to another
file which lines are wrong and why:`,
  run(`cat > signals.ndjson <<'END'
{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open","price":64250.5,"client_signal_id":"btc-1"}
{"source":"venue_3","type":"stock","symbol":"AAPL","side":"sell","signal_time":"yesterday","client_signal_id":"aapl-1"}
{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"close","price":64900,"client_signal_id":"btc-2"}
END
signalbox send --key-file key.txt --refused refused.ndjson signals.ndjson`),
  run("cat refused.ndjson"),
  "Correct the second line, and send the file:",
  run(`sed -i 's/"sell","signal_time":"yesterday"/"close","direction":"sell"/' signals.ndjson
signalbox send --key-file key.txt signals.ndjson`),
  "Sending it twice does no harm:",
  run("signalbox send --key-file key.txt signals.ndjson"),

  `## A key rotated under load

These four bots send signals as fast as they can until there is a file \`stop\`. When one is refused, it reads the key again
and retries:`,
  run(`cat > bots.sh <<'END'
send() {
  echo "Authorization: Bearer $(cat key.txt)" |
    curl -sf -w '\\n' http://127.0.0.1:8080/v1/signals -H @- -H 'Content-Type: application/json' \\
      -d '{"source":"venue_1","type":"crypto","symbol":"SOL/USDT","side":"open","client_signal_id":"'$1'"}'
}
bot() {
  n=0
  until [ -e stop ]; do
    n=$((n + 1))
    until send "bot-$1-$n"; do sleep 0.1; done
  done
}
for name in 1 2 3 4; do bot $name > answers-$name.ndjson & done
wait
END`),
  "They run in a third terminal:",
  start("bots", "bash bots.sh"),
  "Meanwhile their key is rotated. The old one keeps working for a day, so nothing has to happen at the same moment:",
  run("(umask 077; signalbox key rotate bot-7 > new.txt)\nmv new.txt key.txt"),
  "The bots read the new key for their next signal. Then the old one can go:",
  run((page) => latest(page, /signalbox key revoke \w+$/gm)),
  "Stop the bots a second later:",
  run("sleep 1\ntouch stop"),
  look("bots", "its end"),
  "Was a signal lost, or stored twice? Count the answers, the signals that are stored, and their different ids:",
  run(`cat answers-*.ndjson | grep -c '"id"'
signalbox signals export --symbol SOL/USDT | wc -l
signalbox signals export --symbol SOL/USDT | grep -o '"client_signal_id":"[^"]*"' | sort -u | wc -l`),
  run("signalbox key list --desk alpha"),

  `## Signals as they come

This is the desk's latest signal:`,
  run("signalbox signals tail --desk alpha --limit 1"),
  "In the third terminal, the operator follows what comes after it:",
  start(
    "tail",
    (page) => `signalbox signals tail --desk alpha --follow --after ${idOf(page, "SOL/USDT")}`,
  ),
  "`signalbox send` also sends a single signal:",
  run(
    "signalbox send --key-file key.txt --source venue_2 --type crypto --symbol ADA/USDT --side open",
  ),
  "The third terminal shows it at once:",
  look("tail", /ADA\/USDT.*\r/),
  look("tail", "Ctrl-C"),
  "After Ctrl-C, another signal is sent. It is not missed: continue after the last id that was shown.",
  run("signalbox send --key-file key.txt --source venue_3 --type stock --symbol MSFT --side open"),
  run((page) => `signalbox signals tail --desk alpha --after ${idOf(page, "ADA/USDT")}`),

  `## A backup and a restore

A backup is made while the server runs, and verified. It can be verified again wherever it is kept:`,
  run("signalbox backup noon.db"),
  run("signalbox verify noon.db"),
  "After that, one more signal is stored, and the key is revoked because it has leaked:",
  run(NVDA),
  run("signalbox key revoke - < key.txt"),
  "The database has to go back to noon. Stop the server with Ctrl-C, then restore the backup:",
  look("server", "Ctrl-C"),
  run("signalbox restore noon.db --force"),
  start("server", "signalbox serve"),
  look("server", /manage their keys at .*\r/),
  "The leaked key was active at noon, but stays revoked. The bot gets a new one:",
  run("(umask 077; signalbox key mint --desk alpha --label bot-8 > key.txt)"),
  run("signalbox key list --desk alpha"),
  `The signal that came after the backup is not stored any more. The bot sends it again, with the same \`client_signal_id\`, and
the desk has everything that it had:`,
  run(NVDA),
  run("signalbox signals list --desk alpha --limit 3"),
];

function post(body: object): string {
  return `curl -sS -w '\\nHTTP %{http_code}\\n' http://127.0.0.1:8080/v1/signals -H @- -H 'Content-Type: application/json' \\
  -d '${JSON.stringify(body)}' <<END
Authorization: Bearer $(cat key.txt)
END`;
}

function latest(page: string, pattern: RegExp): string {
  return page.match(pattern)?.at(-1) ?? "";
}

/** Of the latest signal in a table with this symbol. */
function idOf(page: string, symbol: string): string {
  return latest(page, new RegExp(`\\b01\\w{24}(?=  ${symbol})`, "g"));
}

// CI has curl in the suite of faults, which runs this file too.
test.skipIf(Bun.which("curl") === null)(
  "docs/tour.md shows what the commands print",
  async () => {
    const page = await writeTour(steps, await buildExecutable());
    if (process.env["TOUR"] === "write") await Bun.write(FILE, page);
    expect(page, "if this is what they should print: bun run tour").toBe(
      await Bun.file(FILE).text(),
    );
  },
  120_000,
);
