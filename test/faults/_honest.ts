/**
 * A program: one honest client, as README tells bots to be. It sends a signal, waits for its answer,
 * sends it again with the same id when there is none, and pauses before the next. When its stdin ends
 * it prints all results as one line of JSON. Tests start it with `_crowd.ts`.
 */
import type { LoadResult } from "../_client.ts";
import { request, stdinEnded, type Visitor, visit } from "./_visitor.ts";

export interface HonestOptions {
  readonly url: string;
  readonly key: string;
  readonly prefix: string;
  /** `keep`: one connection as long as the server lets it; `fresh`: a connection a signal. */
  readonly reuse: "keep" | "fresh";
}

export interface HonestResult extends LoadResult {
  /** When it was first sent, epoch milliseconds. */
  readonly at: number;
  /** From then to its answer, connecting and retries included. */
  readonly latencyMs: number;
}

const PAUSE_MS = 20;
/** The patience of README's examples. */
const ANSWER_TIMEOUT_MS = 10_000;

async function answerOf(visitor: Visitor, text: string): Promise<string | null> {
  visitor.forget();
  const deadline = performance.now() + ANSWER_TIMEOUT_MS;
  visitor.socket.write(text);
  while (!visitor.isClosed() && performance.now() < deadline) {
    const answer = visitor.received();
    if (/\r\n\r\n\{.*\}$/s.test(answer)) return answer;
    await Promise.race([visitor.news(), Bun.sleep(1_000)]);
  }
  visitor.socket.end();
  return null;
}

async function run(options: HonestOptions): Promise<HonestResult[]> {
  const { url, key, prefix, reuse } = options;
  const results: HonestResult[] = [];
  const ending = stdinEnded();
  let visitor: Visitor | null = null;
  for (let count = 0; !ending.aborted; count++) {
    const clientId = `${prefix}-${count}`;
    const at = Date.now();
    const started = performance.now();
    for (let unanswered = 0; ; unanswered++) {
      if (visitor === null || visitor.isClosed()) {
        visitor = await visit(url, { handshake: true }).catch(() => null);
      }
      const answer = visitor === null ? null : await answerOf(visitor, request(url, key, clientId));
      const isLast = answer !== null && !answer.startsWith("HTTP/1.1 503");
      if (isLast) {
        const latencyMs = performance.now() - started;
        const outcome = Number(answer.slice(9, 12));
        const id = /"id":"(\w+)"/.exec(answer)?.[1] ?? null;
        results.push({ clientId, outcome, id, unanswered, at, latencyMs });
        break;
      }
      visitor = null;
      await Bun.sleep(PAUSE_MS);
    }
    if (reuse === "fresh") {
      visitor?.socket.end();
      visitor = null;
    }
    await Bun.sleep(PAUSE_MS);
  }
  return results;
}

if (import.meta.main) {
  const results = await run(JSON.parse(process.argv[2] ?? "") as HonestOptions);
  await Bun.write(Bun.stdout, `${JSON.stringify(results)}\n`);
  process.exit(0);
}
