// Stores one signal: bun send.ts, or npx tsx send.ts. The key is in the variable SIGNALBOX_KEY.
// For a private certificate: NODE_EXTRA_CA_CERTS=cert.pem bun send.ts
const url = "https://signals.example.com/v1/signals";
const headers = {
  Authorization: `Bearer ${process.env["SIGNALBOX_KEY"]}`,
  "Content-Type": "application/json",
};

/** Returns a UUID v7, which begins with the time. */
function newId(): string {
  const now = Date.now().toString(16).padStart(12, "0");
  return `${now.slice(0, 8)}-${now.slice(8)}-7${crypto.randomUUID().slice(15)}`;
}

/** One attempt: the answer, or the problem and whether a retry can help. */
async function post(body: string) {
  try {
    const signal = AbortSignal.timeout(10_000);
    const answer = await fetch(url, { method: "POST", headers, body, signal });
    const text = await answer.text();
    if (answer.ok) return { answer: JSON.parse(text) as { id: string; deduped: boolean } };
    const canRetry = answer.status === 429 || answer.status >= 500;
    const waitMs = Number(answer.headers.get("Retry-After") ?? 0) * 1_000;
    return { problem: `${answer.status} ${text}`, canRetry, waitMs };
  } catch (error) {
    const { code = "", message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
    const isFinal = /CERT|SIGNATURE|ISSUER|ENOTFOUND/.test(code); // certificate, host name
    return { problem: `${url}: ${code} ${message}`, canRetry: !isFinal, waitMs: 0 };
  }
}

/** Resolves with the answer; rejects if no retry can help, or none has helped. */
async function send(signal: object, attempts = 8) {
  // Made once per signal, before the first attempt: this is what makes a retry safe.
  const body = JSON.stringify({ client_signal_id: newId(), ...signal });
  for (let attempt = 1; ; attempt += 1) {
    const { answer, problem, canRetry, waitMs = 0 } = await post(body);
    if (answer) return answer;
    if (!canRetry) throw new Error(problem);
    if (attempt === attempts) throw new Error(`Outcome unknown, send again: ${body} (${problem})`);
    console.error(`attempt ${attempt} of ${attempts}: ${problem}`);
    const jitterMs = Math.random() * Math.min(30_000, 200 * 2 ** attempt);
    await new Promise((resolve) => setTimeout(resolve, Math.max(waitMs, jitterMs)));
  }
}

send({ source: "venue_2", type: "crypto", symbol: "BTC/USDT", side: "open" }).then(
  console.log,
  (error: Error) => {
    console.error(error.message);
    process.exitCode = 1;
  },
);
