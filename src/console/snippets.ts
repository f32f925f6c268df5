/**
 * Programs that send a signal, ready to run. Each makes the id of a signal once, before its first
 * attempt, and repeats the same body until the outcome is known: see README.md, "Retries". The key is
 * read from the environment, and never printed.
 */
import { shellQuoted } from "../domain/shell.ts";

/** What the key is called there. */
export const KEY_VARIABLE = "SIGNALBOX_KEY";

export interface Snippet {
  readonly id: string;
  readonly name: string;
  /** How it is run, once the key is in the environment. */
  readonly how: string;
  readonly text: string;
}

/** `publicUrl`: what bots call the public interface. */
export function snippets(publicUrl: string): readonly Snippet[] {
  const url = signalsUrl(publicUrl);
  return [
    { id: "curl", name: "curl", how: "Paste it into the same terminal.", text: curl(url) },
    {
      id: "python",
      name: "Python",
      how: "Save it as send.py, and run: python3 send.py. It needs nothing but Python 3.",
      text: python(url),
    },
    {
      id: "typescript",
      name: "TypeScript",
      how: "Save it as send.ts, and run: bun send.ts, or: npx tsx send.ts.",
      text: typescript(url),
    },
  ];
}

export function signalsUrl(publicUrl: string): string {
  return `${publicUrl.replace(/\/+$/, "")}/v1/signals`;
}

function curl(url: string): string {
  return `# Made once: each retry sends the same id, so nothing is stored twice.
ID=$(uuidgen 2>/dev/null || cat /proc/sys/kernel/random/uuid)

curl -sS ${shellQuoted(url)} \\
  --retry 8 --retry-all-errors --retry-max-time 60 --max-time 10 \\
  -H "Authorization: Bearer $${KEY_VARIABLE}" \\
  -H 'Content-Type: application/json' \\
  -d '{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open","direction":"long",
       "price":64250.5,"quantity":0.25,"client_signal_id":"'"$ID"'",
       "metadata":{"take_profit":66000,"stop_loss":63000}}'
`;
}

function python(url: string): string {
  return `import http.client, json, os, random, time, urllib.error, urllib.request, uuid

URL = ${JSON.stringify(url)}
HEADERS = {
    "Authorization": f"Bearer {os.environ['${KEY_VARIABLE}']}",
    "Content-Type": "application/json",
}

def send(signal: dict, attempts: int = 8) -> dict:
    """Returns the answer; raises on a request that no retry can mend."""
    # Made once for each signal, before the first attempt: this is what makes a retry safe.
    signal = {"client_signal_id": str(uuid.uuid4()), **signal}
    request = urllib.request.Request(URL, json.dumps(signal).encode(), HEADERS)
    for attempt in range(attempts):
        wait = random.uniform(0, min(30, 0.2 * 2**attempt))  # full jitter
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code != 429 and error.code < 500:
                raise ValueError(f"{error.code} {error.read().decode()}") from None
            wait = max(wait, float(error.headers.get("Retry-After", 0)))
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            pass  # no answer: the outcome is unknown
        time.sleep(wait)
    raise TimeoutError(f"no answer for {signal['client_signal_id']}: outcome unknown, send it again")

print(send({"source": "venue_2", "type": "crypto", "symbol": "BTC/USDT", "side": "open"}))
`;
}

function typescript(url: string): string {
  return `const url = ${JSON.stringify(url)};
const headers = {
  Authorization: \`Bearer \${process.env.${KEY_VARIABLE}}\`,
  "Content-Type": "application/json",
};

/** Resolves with the answer; rejects on a request that no retry can mend. */
async function send(signal: Record<string, unknown>, attempts = 8): Promise<{ id: string; deduped: boolean }> {
  // Made once for each signal, before the first attempt: this is what makes a retry safe.
  const body = JSON.stringify({ client_signal_id: crypto.randomUUID(), ...signal });
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const waitMs = Math.random() * Math.min(30_000, 200 * 2 ** attempt); // full jitter
    const answer = await fetch(url, { method: "POST", headers, body, signal: AbortSignal.timeout(10_000) }).catch(
      () => null,
    );
    const text = await answer?.text().catch(() => null);
    if (answer?.ok && text != null) return JSON.parse(text) as { id: string; deduped: boolean };
    if (answer != null && answer.status >= 400 && answer.status !== 429 && answer.status < 500) {
      throw new Error(\`\${answer.status} \${text}\`);
    }
    const retryAfterMs = Number(answer?.headers.get("Retry-After") ?? 0) * 1_000;
    await new Promise((resolve) => setTimeout(resolve, Math.max(waitMs, retryAfterMs)));
  }
  throw new Error(\`no answer: outcome unknown, send the same body again: \${body}\`);
}

send({ source: "venue_2", type: "crypto", symbol: "BTC/USDT", side: "open" }).then(console.log);
`;
}
