// Stores one signal: bun send.ts, or npx tsx send.ts. The key is in the variable SIGNALBOX_KEY.
const url = "https://signals.example.com/v1/signals";
const key = process.env["SIGNALBOX_KEY"];
if (!key) stop("Set SIGNALBOX_KEY: read -rs SIGNALBOX_KEY && export SIGNALBOX_KEY");
const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };

/** Returns a UUID v7, which begins with the time. */
function newId(): string {
  const now = Date.now().toString(16).padStart(12, "0");
  return `${now.slice(0, 8)}-${now.slice(8)}-7${crypto.randomUUID().slice(15)}`;
}

function stop(problem: string): never {
  console.error(problem);
  process.exit(1);
}

/** Resolves with the answer; exits if no retry can help, or none has helped. */
async function send(signal: object, attempts = 8) {
  // Made once per signal, before the first attempt: this is what makes a retry safe.
  const body = JSON.stringify({ client_signal_id: newId(), ...signal });
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    let waitMs = Math.random() * Math.min(30_000, 200 * 2 ** attempt); // full jitter
    let problem: string;
    try {
      const timeout = AbortSignal.timeout(10_000);
      const answer = await fetch(url, { method: "POST", headers, body, signal: timeout });
      const text = await answer.text();
      if (answer.ok) return JSON.parse(text) as { id: string; deduped: boolean };
      problem = `${url}: ${answer.status} ${text}`;
      if (answer.status !== 429 && answer.status < 500) stop(problem);
      const after = answer.headers.get("Retry-After") ?? ""; // seconds or, from some proxies, a date
      waitMs = Math.max(waitMs, Number(after) * 1_000 || Date.parse(after) - Date.now() || 0);
    } catch (error) {
      const { code = "", message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
      problem = `${url}: ${code} ${message}`;
      if (/CERT|SIGNATURE|ISSUER/.test(code))
        stop(`${problem}\nFor a private certificate, set NODE_EXTRA_CA_CERTS=cert.pem.`);
      if (/EPROTO|WRONG_VERSION|PACKET_LENGTH|RECORD_LAYER/.test(code))
        stop(`${problem}\nIs it http or https?`);
      if (code === "ENOTFOUND") stop(problem);
    }
    console.error(`attempt ${attempt} of ${attempts}: ${problem}`);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
  stop(`Outcome unknown, send again: ${body}`);
}

void send({ source: "venue_2", type: "crypto", symbol: "BTC/USDT", side: "open" }).then(
  console.log,
);
