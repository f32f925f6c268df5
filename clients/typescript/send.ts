// Stores one signal: bun send.ts, npx tsx send.ts, or deno run -EN send.ts. The key is in the variable SIGNALBOX_KEY.
import { Signalbox } from "./signalbox.ts";

const key = process.env["SIGNALBOX_KEY"];
if (!key) {
  console.error(
    "Set SIGNALBOX_KEY: stty -echo; read -r SIGNALBOX_KEY; stty echo; export SIGNALBOX_KEY",
  );
  process.exit(1);
}
const signalbox = new Signalbox({ url: "https://signals.example.com", key });

signalbox.send({ source: "venue_2", type: "crypto", symbol: "BTC/USDT", side: "open" }).then(
  ({ id, deduped }) => console.log({ id, deduped }),
  (error: Error) => {
    console.error(error.message);
    process.exitCode = 1;
  },
);
