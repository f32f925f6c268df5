/**
 * Reads signals from Signalbox in the order of storage. For Bun, Node and Deno, without dependencies.
 * It is not published: copy this file into your program.
 *
 *     const feed = new Feed({ url: "https://signals.example.com:8082", key, after: await loadCursor() });
 *     for await (const signal of feed.signals()) await actAndSaveCursor(signal, signal.id);
 *
 * A signal's id is the cursor: a program that continues after it misses nothing, and gets nothing twice.
 * To trust a private certificate, set NODE_EXTRA_CA_CERTS=cert.pem (Deno: DENO_CERT) before the program starts.
 */
export interface StoredSignal {
  /** A ULID; strictly increases in the order of storage. */
  id: string;
  desk: string;
  /** By the server's clock, epoch milliseconds. */
  received_at: number;
  key_id: string;
  key_label: string | null;
  source: "venue_1" | "venue_2" | "venue_3";
  type: "prediction_market" | "crypto" | "stock";
  symbol: string;
  side: "open" | "close";
  direction: "long" | "short" | "buy" | "sell" | null;
  price: number | null;
  quantity: number | null;
  signal_time: number | null;
  client_signal_id: string | null;
  metadata: Record<string, unknown> | null;
}

export interface FeedOptions {
  /** The address of `--read-listen`. It must be https, except for loopback. */
  url: string;
  /** A read key: `sbr_…`. */
  key: string;
  /** Where to begin: the id of the last signal that was handled, `now`, or null for the beginning. */
  after: string | null;
  /** Only signals of this desk; a key for one desk implies it. */
  desk?: string;
  /** Signals per request, at most 1,000. */
  limit?: number;
  /** Ends {@link Feed.signals}. */
  signal?: AbortSignal;
  /** Gets the problem of each attempt that is followed by another; `console.warn` if not given. */
  onRetry?: (problem: string) => void;
}

/** The request was refused, or the URL is wrong: no retry can help. */
export class FeedError extends Error {
  /** The status of the answer, or null if there was none. */
  readonly status: number | null;
  /** As in the feed's errors, such as `validation_failed`, or the system's, such as `CERT_HAS_EXPIRED`. */
  readonly code: string;
  /** With `validation_failed`: the reason per parameter. `after`: the database was restored, see docs/feed.md. */
  readonly fields: Record<string, string>;

  constructor(
    problem: string,
    status: number | null,
    code: string,
    fields: Record<string, string>,
  ) {
    super(problem);
    this.name = "FeedError";
    this.status = status;
    this.code = code;
    this.fields = fields;
  }
}

const WAIT_S = 30;
const TIMEOUT_MS = 60_000;

type Page = { signals: StoredSignal[]; next: string | null };

/** Another attempt may help. */
class Retry extends Error {
  readonly afterMs: number;

  constructor(problem: string, afterMs = 0) {
    super(problem);
    this.afterMs = afterMs;
  }
}

export class Feed {
  readonly #options: FeedOptions;
  readonly #url: string;

  constructor(options: FeedOptions) {
    const wrong = problemOf(options.url);
    if (wrong !== null) throw new TypeError(`${options.url}: ${wrong}`);
    if (!/^sbr_[0-9a-f]{64}$/.test(options.key))
      throw new TypeError("A read key is sbr_ and 64 hexadecimal digits, without a line break.");
    this.#options = options;
    this.#url = `${options.url.replace(/\/*(\/feed)?\/*$/, "")}/feed`;
  }

  /**
   * Yields each signal once, and waits for more. It retries for ever what a retry can help, and throws
   * {@link FeedError} for the rest.
   */
  async *signals(): AsyncGenerator<StoredSignal, void> {
    const { signal, onRetry = console.warn } = this.#options;
    const isOver = () => signal?.aborted ?? false;
    let { after } = this.#options;
    let attempt = 0;
    while (!isOver()) {
      try {
        const page = await this.#read(after);
        attempt = 0;
        for (const one of page.signals) {
          yield one;
          if (isOver()) return;
        }
        after = page.next;
      } catch (error) {
        if (isOver()) return;
        if (!(error instanceof Retry)) throw error;
        attempt += 1;
        onRetry(`attempt ${attempt}: ${error.message}`);
        const backoffMs = Math.random() * Math.min(30_000, 200 * 2 ** attempt);
        await pause(Math.max(backoffMs, error.afterMs), signal);
      }
    }
  }

  async #read(after: string | null): Promise<Page> {
    const { desk, limit } = this.#options;
    const wait = after === "now" ? 0 : WAIT_S; // If that wait were cut, "now" would be later.
    const given = Object.entries({ desk, after, limit, wait }).filter(
      ([, value]) => value !== undefined && value !== null,
    );
    const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
    const [answer, text] = await this.#get(search.toString());
    const { status, headers } = answer;
    if (status === 200) return readPage(text);
    const problem = `${this.#url}: ${status} ${text.slice(0, 1_000)}`;
    const { error, fields } = parse(text) as { error?: string; fields?: Record<string, string> };
    // Any other answer may be a middle box's.
    const isRefusal = status >= 400 && status < 500 && typeof error === "string";
    if (isRefusal && status !== 429) throw new FeedError(problem, status, error, fields ?? {});
    const seconds = Number(headers.get("Retry-After")) || 0;
    throw new Retry(problem, Math.min(3_600, seconds) * 1_000);
  }

  async #get(search: string): Promise<[Response, string]> {
    const { key, signal } = this.#options;
    // Not AbortSignal.any: Node keeps what that makes as long as the reader's own signal.
    const ending = new AbortController();
    const end = () => ending.abort(new DOMException("no answer in time", "TimeoutError"));
    const timer = setTimeout(end, TIMEOUT_MS);
    signal?.addEventListener("abort", end);
    const request = {
      headers: { Authorization: `Bearer ${key}` },
      signal: ending.signal,
      redirect: "manual",
      proxy: this.#url.startsWith("http:") ? false : undefined, // Bun: it would get the key in the clear.
    } as const;
    try {
      const answer = await fetch(`${this.#url}?${search}`, request);
      return [answer, await answer.text()];
    } catch (error) {
      const { code, problem, advice } = await explain(this.#url, error as Error);
      throw advice === null ? new Retry(problem) : new FeedError(problem, null, code, {});
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
    }
  }
}

/** The last line has the next cursor: without it the answer was cut. */
function readPage(text: string): Page {
  const lines = text.trimEnd().split("\n");
  const end = parse(lines.pop() ?? "") as { next?: string | null };
  if (end.next === undefined) throw new Retry("the answer was cut");
  return { signals: lines.map((line) => JSON.parse(line) as StoredSignal), next: end.next };
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

function problemOf(url: string): string | null {
  if (!url.includes("://"))
    return "write http://127.0.0.1:8082, or https:// and your server's name.";
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

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
