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
  /** Per signal, over all its attempts. Not limited if not given. */
  giveUpAfterMs?: number;
  /** Ends the retries. An attempt that has begun is finished. */
  signal?: AbortSignal;
  /** Gets the problem of each attempt that is followed by another; `console.warn` if not given. */
  onRetry?: (problem: string, failure: Failure) => void;
  /** The runtime's own if not given. */
  fetch?: (url: string, request: RequestInit) => Promise<Response>;
}

/** The signal was refused, or there was no answer in all attempts. */
export class SignalboxError extends Error {
  /** The status of the last answer, or null if there was none. */
  readonly status: number | null;
  /** As in the API's errors, such as `validation_failed`, or the system's code, such as `ECONNRESET`. */
  readonly code: string;
  /** With `validation_failed`: the reason per invalid field. */
  readonly fields: Record<string, string>;
  /** As it was sent. */
  readonly signal: Signal;
  /** True if an attempt had no clear answer. Send `signal` again, with its `client_signal_id`, to find out. */
  readonly mayBeStored: boolean;

  constructor(failure: Failure, signal: Signal, mayBeStored: boolean) {
    const gaveUp = failure.canRetry ? "Gave up: for a longer downtime, set attempts. " : "";
    const state = mayBeStored ? "It may be stored" : "It is not stored";
    const again = `${gaveUp}${state}: send it again with client_signal_id ${signal.client_signal_id}.`;
    const isOpen = mayBeStored || failure.canRetry;
    super(isOpen ? `${failure.problem}\n${again}` : failure.problem);
    this.name = "SignalboxError";
    this.status = failure.status;
    this.code = failure.code;
    this.fields = failure.fields;
    this.signal = signal;
    this.mayBeStored = mayBeStored;
  }
}

/** An attempt that did not succeed, or the last of several. */
export interface Failure extends Pick<
  SignalboxError,
  "status" | "code" | "fields" | "mayBeStored"
> {
  problem: string;
  /** The body of the answer; empty if there was none. */
  answer: string;
  canRetry: boolean;
  retryAfterMs: number;
}

export class Signalbox {
  readonly #options: Required<Omit<Options, "signal">> & Pick<Options, "signal">;
  /** Ends each pause. (Node warns of a signal with more than ten listeners.) */
  readonly #wakeUps = new Set<() => void>();

  constructor(options: Options) {
    const wrong = problemOf(options.url);
    if (wrong !== null) throw new TypeError(`${options.url}: ${wrong}`);
    if (!/^[!-~]+$/.test(options.key))
      throw new TypeError("The key is empty, or has a space or a line break in it.");
    const url = `${options.url.replace(/\/*(\/v1\/signals)?\/*$/, "")}/v1/signals`;
    const { attempts = 8, timeoutMs = 10_000, giveUpAfterMs = Infinity } = options;
    const { onRetry = (problem: string) => console.warn(problem) } = options;
    const { fetch: ask = (to: string, request: RequestInit) => fetch(to, request) } = options;
    this.#options = { ...options, url, attempts, timeoutMs, giveUpAfterMs, onRetry, fetch: ask };
    options.signal?.addEventListener("abort", () => this.#wakeUps.forEach((wakeUp) => wakeUp()));
  }

  /** Resolves when the signal is on disk. Throws {@link SignalboxError}. */
  async send(signal: Signal): Promise<Stored> {
    // Made before the first attempt: every attempt sends the same body, which is what makes it safe.
    const sent = { ...signal, client_signal_id: signal.client_signal_id ?? uuidV7() };
    const fields = notJson(sent);
    if (Object.keys(fields).length > 0) throw new SignalboxError(refusal(fields), sent, false);
    const result = await this.post(JSON.stringify(sent));
    if ("id" in result) return result;
    throw new SignalboxError(result, sent, result.mayBeStored);
  }

  /** Sends a signal in JSON that has a `client_signal_id`, as it is. Resolves when there is nothing left to try. */
  async post(body: string | Uint8Array<ArrayBuffer>): Promise<Stored | Failure> {
    const { attempts, giveUpAfterMs, signal, onRetry } = this.#options;
    const isOver = () => signal?.aborted ?? false;
    const startedAt = performance.now();
    let mayBeStored = false;
    for (let attempt = 1; ; attempt += 1) {
      const result = await this.#attempt(body);
      if ("id" in result) return result;
      mayBeStored ||= result.mayBeStored;
      const failure = { ...result, mayBeStored };
      const leftMs = startedAt + giveUpAfterMs - performance.now();
      if (!result.canRetry || attempt >= attempts || leftMs <= 0 || isOver()) return failure;
      onRetry(`attempt ${attempt} of ${attempts}: ${result.problem}`, failure);
      const backoffMs = (0.5 + Math.random() / 2) * Math.min(30_000, 200 * 2 ** attempt);
      const waitMs = Math.min(3_600_000, Math.max(backoffMs, result.retryAfterMs));
      // The last attempt is at the end of the time.
      await this.#pause(Math.min(waitMs, leftMs));
      if (isOver()) return failure;
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#wakeUps.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#wakeUps.add(end);
    });
  }

  async #attempt(body: string | Uint8Array<ArrayBuffer>): Promise<Stored | Failure> {
    const { url, key, timeoutMs } = this.#options;
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    const signal = AbortSignal.timeout(timeoutMs);
    const proxy = url.startsWith("http:") ? false : undefined; // Bun: it would get the key in the clear.
    const request = { method: "POST", headers, body, signal, redirect: "manual", proxy } as const;
    try {
      const answer = await this.#options.fetch(url, request);
      return read(url, answer, await answer.text());
    } catch (error) {
      const { code, problem, advice, isSent } = await explain(url, error as Error);
      const outcome = { canRetry: advice === null, mayBeStored: isSent, retryAfterMs: 0 };
      return { problem, status: null, code, fields: {}, answer: "", ...outcome };
    }
  }
}

function read(url: string, answer: Response, text: string): Stored | Failure {
  const { status, ok, headers } = answer;
  const json = parse(text) as Partial<Answer> & { error?: string; fields?: Record<string, string> };
  const differs = headers.get("X-Duplicate-Differs")?.split(", ") ?? [];
  if (ok && typeof json.id === "string" && typeof json.deduped === "boolean")
    return { ...(json as Answer), differs };
  const after = headers.get("Retry-After") ?? ""; // seconds or, from some proxies, a date
  // Any other answer may be a middle box's, which may have passed on the request.
  const isRefusal = status >= 400 && status < 500 && typeof json.error === "string";
  return {
    problem: `${url}: ${status} ${text.slice(0, 1_000)}`,
    status,
    code: json.error ?? String(status),
    fields: json.fields ?? {},
    answer: text,
    canRetry: !isRefusal || status === 429,
    mayBeStored: !isRefusal,
    retryAfterMs: Number(after) * 1_000 || Date.parse(after) - Date.now() || 0,
  };
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
  const outcome = { canRetry: false, mayBeStored: false, retryAfterMs: 0 };
  return { problem, status: null, code, fields, answer: "", ...outcome };
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

/** Why there was no answer. `advice`: null if another attempt can help. `isSent`: the request may have arrived. */
async function explain(url: string, error: Error) {
  const cause = (error.cause ?? error) as Error & { code?: unknown };
  const code = typeof cause.code === "string" ? cause.code : cause.name;
  const isNamed = code.endsWith("Error") || cause.message.includes(code);
  const text = isNamed ? cause.message : `${code}: ${cause.message}`;
  const isCertificate = !code.startsWith("ERR_SSL") && CERTIFICATE.test(text); // not an alert about one
  const isSent = !isCertificate && !UNREACHED.test(text);
  let advice: string | null = null;
  if (isCertificate && OTHER_NAME.test(text)) advice = "\nUse a name that the certificate has.";
  else if (isCertificate)
    advice = "\nFor a private certificate, set NODE_EXTRA_CA_CERTS=cert.pem (Deno: DENO_CERT).";
  else if (NOT_TLS.test(text) && (await isPlain(url))) advice = "\nIs it http or https?";
  return { code, problem: `${url}: ${text}${advice ?? ""}`, advice, isSent };
}

const UNREACHED =
  /refused|ENOTFOUND|EAI_AGAIN|failure in name|Name or service|client error \(Connect\)/i;
const OTHER_NAME = /ALTNAME|NotValidForName|not valid for/;
const CERTIFICATE = /CERT|SIGNATURE|ISSUER|invalid peer certificate|not valid for/;
const NOT_TLS = /EPROTO|WRONG_VERSION|PACKET_LENGTH|RECORD_LAYER|InvalidContentType/;

/**
 * Whether a server answers a handshake with something else. Nothing else is sent. (The error does not tell:
 * Bun's is the same for all that breaks inside TLS, also after the request arrived.)
 */
async function isPlain(url: string): Promise<boolean> {
  const { connect } = await import("node:tls");
  const { hostname, port } = new URL(url);
  const address = { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) || 443 };
  return new Promise((resolve) => {
    const end = (is: boolean) => (clearTimeout(timer), socket.destroy(), resolve(is));
    const socket = connect({ ...address, rejectUnauthorized: false }, () => end(false));
    const timer = setTimeout(() => end(false), 5_000);
    socket.on("error", (error: Error & { code?: string }) => end(NOT_TLS.test(error.code ?? "")));
    socket.on("close", () => end(false));
  });
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
