/**
 * Sends signals to Signalbox, each stored exactly once. For Bun, Node and Deno, without dependencies.
 * It is not published: copy this file into your bot.
 *
 *     const signalbox = new Signalbox({ url: "https://signals.example.com", key });
 *     const { id, deduped } = await signalbox.send({ source: "venue_2", type: "crypto", symbol: "BTC/USDT", side: "open" });
 *
 * To trust a private certificate, set NODE_EXTRA_CA_CERTS=cert.pem (Deno: DENO_CERT=cert.pem) before the
 * program starts.
 */
export interface Signal {
  source: "venue_1" | "venue_2" | "venue_3";
  type: "prediction_market" | "crypto" | "stock";
  symbol: string;
  side: "open" | "close";
  direction?: "long" | "short" | "buy" | "sell";
  price?: number;
  quantity?: number;
  /** The bot's time, epoch milliseconds. */
  signal_time?: number;
  /**
   * Signals with the same id are stored once. Derive it from the bot's own event, so that a bot that
   * restarts sends the same id again. Without it, {@link Signalbox.send} makes a UUID v7.
   */
  client_signal_id?: string;
  metadata?: Record<string, unknown>;
}

/** `deduped`: this `client_signal_id` was stored before; `id` is the original signal's. */
export type Stored = Answer & { /** Fields in which a duplicate differs. */ differs: string[] };
type Answer = { id: string; received_at: number; deduped: false } | { id: string; deduped: true };

export interface Options {
  /** The server's address. It must be https, except for loopback. */
  url: string;
  key: string;
  /** Per signal. Eight last about half a minute; `Infinity` never gives up. */
  attempts?: number;
  /** Per attempt. */
  timeoutMs?: number;
  /** Gets the problem of each attempt that is followed by another; `console.warn` if not given. */
  onRetry?: (problem: string) => void;
}

/** The signal was refused, or there was no answer in all attempts. */
export class SignalboxError extends Error {
  /** The status of the last answer, or null if there was none. */
  readonly status: number | null;
  /** As in the API's errors, such as `validation_failed`, or the system's code, such as `ENOTFOUND`. */
  readonly code: string;
  /** With `validation_failed`: the reason per invalid field. */
  readonly fields: Record<string, string>;
  /** As it was sent. */
  readonly signal: Signal;
  /** True if an attempt had no clear answer. Send `signal` again, with its `client_signal_id`, to find out. */
  readonly mayBeStored: boolean;

  constructor(failure: Failure, signal: Signal, mayBeStored: boolean) {
    const again = `It may be stored: send it again with client_signal_id ${signal.client_signal_id}.`;
    super(mayBeStored ? `${failure.problem}\n${again}` : failure.problem);
    this.name = "SignalboxError";
    this.status = failure.status;
    this.code = failure.code;
    this.fields = failure.fields;
    this.signal = signal;
    this.mayBeStored = mayBeStored;
  }
}

/** An attempt that did not succeed. */
interface Failure extends Pick<SignalboxError, "status" | "code" | "fields" | "mayBeStored"> {
  problem: string;
  canRetry: boolean;
  retryAfterMs: number;
}

export class Signalbox {
  readonly #options: Required<Options>;

  constructor(options: Options) {
    const wrong = problemOf(options.url);
    if (wrong !== null) throw new TypeError(`${options.url}: ${wrong}`);
    if (!/^[!-~]+$/.test(options.key))
      throw new TypeError("The key is empty, or has a space or a line break in it.");
    const url = `${options.url.replace(/\/*(\/v1\/signals)?\/*$/, "")}/v1/signals`;
    this.#options = { attempts: 8, timeoutMs: 10_000, onRetry: console.warn, ...options, url };
  }

  /** Resolves when the signal is on disk. Throws {@link SignalboxError}. */
  async send(signal: Signal): Promise<Stored> {
    const { attempts, onRetry } = this.#options;
    // Made before the first attempt: every attempt sends the same body, which is what makes it safe.
    const sent = { ...signal, client_signal_id: signal.client_signal_id ?? uuidV7() };
    const fields = notJson(sent);
    if (Object.keys(fields).length > 0) throw new SignalboxError(refusal(fields), sent, false);
    const body = JSON.stringify(sent);
    let mayBeStored = false;
    for (let attempt = 1; ; attempt += 1) {
      const result = await this.#post(body);
      if ("id" in result) return result;
      mayBeStored ||= result.mayBeStored;
      if (!result.canRetry || attempt >= attempts)
        throw new SignalboxError(result, sent, mayBeStored);
      onRetry(`attempt ${attempt} of ${attempts}: ${result.problem}`);
      const backoffMs = Math.random() * Math.min(30_000, 200 * 2 ** attempt);
      const waitMs = Math.min(3_600_000, Math.max(backoffMs, result.retryAfterMs));
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  async #post(body: string): Promise<Stored | Failure> {
    const { url, key, timeoutMs } = this.#options;
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    try {
      const signal = AbortSignal.timeout(timeoutMs);
      const proxy = url.startsWith("http:") ? false : undefined; // Bun: it would get the key in the clear.
      const request = { method: "POST", headers, body, signal, redirect: "manual", proxy } as const;
      const answer = await fetch(url, request);
      const { status } = answer;
      const text = await answer.text();
      const json = parse(text) as { id?: string; error?: string; fields?: Record<string, string> };
      const differs = answer.headers.get("X-Duplicate-Differs")?.split(", ") ?? [];
      if (answer.ok && typeof json.id === "string") return { ...(json as Stored), differs };
      const after = answer.headers.get("Retry-After") ?? ""; // seconds or, from some proxies, a date
      return {
        problem: `${url}: ${status} ${text.slice(0, 1_000)}`,
        status,
        code: json.error ?? String(status),
        fields: json.fields ?? {},
        canRetry: answer.ok || status === 429 || status >= 500,
        mayBeStored: answer.ok || status >= 500,
        retryAfterMs: Number(after) * 1_000 || Date.parse(after) - Date.now() || 0,
      };
    } catch (error) {
      const cause = ((error as Error).cause ?? error) as Error & { code?: unknown };
      const code = typeof cause.code === "string" ? cause.code : cause.name;
      const isNamed = code.endsWith("Error") || cause.message.includes(code);
      const text = isNamed ? cause.message : `${code}: ${cause.message}`;
      const advice = adviceFor(text);
      return {
        problem: `${url}: ${text}${advice ?? ""}`,
        status: null,
        code,
        fields: {},
        canRetry: advice === null,
        mayBeStored: advice === null && !/refused|EAI_AGAIN|Temporary failure in name/i.test(text),
        retryAfterMs: 0,
      };
    }
  }
}

/** Returns the reason per field that JSON cannot contain, such as a BigInt, or NaN, which would become null. */
function notJson(signal: Signal): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [name, value] of Object.entries(signal)) {
    try {
      JSON.stringify(value, (_, part: unknown) => {
        if (typeof part !== "number" || Number.isFinite(part)) return part;
        throw new TypeError(`${part} is not a finite number`);
      });
    } catch (error) {
      fields[name] = (error as Error).message;
    }
  }
  return fields;
}

function refusal(fields: Record<string, string>): Failure {
  const reasons = Object.entries(fields).map(([name, reason]) => `${name}: ${reason}`);
  const problem = `Not sent. ${reasons.join("; ")}`;
  const code = "validation_failed";
  const outcome = { status: null, canRetry: false, mayBeStored: false, retryAfterMs: 0 };
  return { problem, code, fields, ...outcome };
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

function problemOf(url: string): string | null {
  if (!url.includes("://"))
    return "write http://127.0.0.1:8080, or https:// and your server's name.";
  const { protocol, hostname } = new URL(url);
  if (protocol !== "https:" && !(protocol === "http:" && LOOPBACK.test(hostname)))
    return "use https, so that nobody on the way can read the key.";
  return hostname.endsWith(".example.com") ? "change the URL to your server's address." : null;
}

/** Returns null if another attempt can help. */
function adviceFor(problem: string): string | null {
  if (/ALTNAME|NotValidForName|not valid for/.test(problem))
    return "\nUse a name that the certificate has.";
  if (/CERT|SIGNATURE|ISSUER|invalid peer certificate/.test(problem))
    return "\nFor a private certificate, set NODE_EXTRA_CA_CERTS=cert.pem (Deno: DENO_CERT).";
  if (/EPROTO|WRONG_VERSION|PACKET_LENGTH|RECORD_LAYER|InvalidContentType/.test(problem))
    return "\nIs it http or https?";
  if (!/ENOTFOUND|Name or service not known/.test(problem)) return null;
  return "\nChange the URL to your server's address.";
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** UUIDs of version 7 begin with the time, which keeps the server's index small and fast. */
function uuidV7(): string {
  const now = Date.now().toString(16).padStart(12, "0");
  return `${now.slice(0, 8)}-${now.slice(8)}-7${crypto.randomUUID().slice(15)}`;
}
