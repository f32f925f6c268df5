/** HTTPS to an ACME directory: bounded in time and size, never redirected, and trusted by `--acme-ca` alone if given. */
import { messageOf } from "../../lib/errors.ts";
import { SECOND_MS } from "../../lib/text/time.ts";
import { VERSION } from "../../lib/version.ts";
import { WAIT_MS_MAX } from "./schedule.ts";

const REQUEST_MS_MAX = 30 * SECOND_MS;
const ANSWER_BYTES_MAX = 1_048_576;

/** An answer other than 2xx: a problem document (RFC 8555, 6.7), or the status of anything else. */
export class Refusal extends Error {
  readonly status: number;
  /** Such as `rateLimited`; null without a problem document. */
  readonly type: string | null;
  /** From `Retry-After`, epoch milliseconds, or null. */
  readonly retryAt: number | null;

  constructor(message: string, status: number, type: string | null, retryAt: number | null) {
    super(message);
    this.status = status;
    this.type = type;
    this.retryAt = retryAt;
  }
}

const TRUST_ADVICE =
  "if this directory is private, name the certificate that its HTTPS is trusted by with --acme-ca FILE";

const REFUSED =
  "it refused the connection (ECONNREFUSED); check the URL of --acme-directory, and the firewall";

const WORDS_LENGTH_MAX = 500;

/** Returns a directory's words as the log, a terminal and `/readyz` can show them. */
export function cutWords(text: string): string {
  return text.slice(0, WORDS_LENGTH_MAX).replaceAll(/\p{Cc}/gu, " ");
}

export function reasonOf(error: unknown): string {
  return cutWords(messageOf(error));
}

interface DirectoryRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | null;
}

interface DirectoryAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly retryAt: number | null;
}

export class Directory {
  readonly url: string;
  readonly #ca: string | null;
  readonly #now: () => number;

  /** `ca`: PEM. `now`: epoch milliseconds. */
  constructor(url: string, ca: string | null, now: () => number) {
    this.url = url;
    this.#ca = ca;
    this.#now = now;
  }

  /** Throws {@link Refusal} unless the answer is 2xx, or a nonce that was not taken, which clients retry. */
  async ask(url: string, request: DirectoryRequest, signal: AbortSignal): Promise<DirectoryAnswer> {
    if (!url.startsWith("https://")) throw new Error(`${url} is not an https URL`);
    const { response, text } = await this.#send(url, request, signal);
    const retryAt = retryTime(response.headers.get("retry-after"), this.#now());
    const { status, headers } = response;
    const problem = response.ok ? null : readProblem(text);
    if (!response.ok && problem?.type !== "badNonce") {
      const said = problem?.detail ?? `${url} answered ${status}`;
      throw new Refusal(said, status, problem?.type ?? null, retryAt);
    }
    return { status, headers: Object.fromEntries(headers), text, retryAt };
  }

  async #send(url: string, { method, headers, body }: DirectoryRequest, signal: AbortSignal) {
    try {
      const response = await fetch(url, {
        method: method ?? "GET",
        headers: { ...headers, "User-Agent": `signalbox/${VERSION}` },
        ...(body == null ? {} : { body }),
        ...(this.#ca === null ? {} : { tls: { ca: this.#ca } }),
        redirect: "manual",
        signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS_MAX)]),
      });
      return { response, text: await readText(response) };
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      const advice = isDistrust(code) ? `; ${TRUST_ADVICE}` : "";
      const reason = code === "ECONNREFUSED" ? REFUSED : messageOf(error) + advice;
      throw new Error(`no answer from ${new URL(url).host}: ${reason}`, { cause: error });
    }
  }
}

/** OpenSSL's codes for a certificate whose issuer is unknown. */
function isDistrust(code: unknown): boolean {
  return /^(UNABLE_TO_|(DEPTH_ZERO_)?SELF_SIGNED_CERT)/.test(String(code));
}

async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > ANSWER_BYTES_MAX) throw new Error("it is larger than 1 MiB");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function readProblem(text: string): { readonly type: string; readonly detail: string } | null {
  try {
    const { type, detail } = JSON.parse(text) as Record<string, unknown>;
    if (typeof type !== "string" || typeof detail !== "string") return null;
    return { type: type.replace("urn:ietf:params:acme:error:", ""), detail };
  } catch {
    return null;
  }
}

/** Reads `Retry-After` (RFC 9110, 10.2.3): seconds, or a date. At most {@link WAIT_MS_MAX} from now. */
export function retryTime(header: string | null, now: number): number | null {
  if (header === null) return null;
  const at = /^\d+$/.test(header) ? now + Number(header) * SECOND_MS : Date.parse(header);
  return Number.isNaN(at) ? null : Math.min(at, now + WAIT_MS_MAX);
}
