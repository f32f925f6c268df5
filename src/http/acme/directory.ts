/** HTTPS to an ACME directory: bounded in time and size, never redirected, and trusted by `--acme-ca` alone if given. */
import { messageOf } from "../../lib/errors.ts";
import { SECOND_MS } from "../../lib/text/time.ts";
import { VERSION } from "../../lib/version.ts";
import { WAIT_MS_MAX } from "./state.ts";

const REQUEST_MS_MAX = 30 * SECOND_MS;
const ANSWER_BYTES_MAX = 1_048_576;
const WORDS_LENGTH_MAX = 500;

const TRUST_ADVICE =
  "if this directory is private, name the certificate that its HTTPS is trusted by with --acme-ca FILE";
const REFUSED =
  "it refused the connection (ECONNREFUSED); check the URL of --acme-directory, and the firewall";

export interface Directory {
  readonly url: string;
  /** PEM; null: it is trusted by the public certificates. */
  readonly ca: string | null;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

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

/** Returns a directory's words as the log, a terminal and `/readyz` can show them. */
export function cutWords(text: string): string {
  return text.slice(0, WORDS_LENGTH_MAX).replaceAll(/\p{Cc}/gu, " ");
}

export function reasonOf(error: unknown): string {
  return cutWords(messageOf(error));
}

/** Named as in axios, by which `acme-client` asks. */
export interface DirectoryRequest {
  readonly url?: string;
  readonly method?: string;
  readonly data?: string;
}

/** Throws {@link Refusal} unless the answer is 2xx, or a nonce that was not taken, which clients retry. */
export async function askDirectory(
  directory: Directory,
  { url = directory.url, method = "get", data }: DirectoryRequest,
  signal: AbortSignal,
) {
  if (!url.startsWith("https://")) throw new Error(`${url} is not an https URL`);
  const { response, text } = await send(url, signal, {
    method: method.toUpperCase(),
    headers: { "Content-Type": "application/jose+json", "User-Agent": `signalbox/${VERSION}` },
    ...(data === undefined ? {} : { body: data }),
    ...(directory.ca === null ? {} : { tls: { ca: directory.ca } }),
  });
  const { status, headers, ok } = response;
  const retryAt = retryTime(headers.get("retry-after"), directory.now());
  const { type, detail } = readProblem(text) ?? { type: null, detail: `${url} answered ${status}` };
  if (!ok && type !== "badNonce") throw new Refusal(detail, status, type, retryAt);
  return { status, headers: Object.fromEntries(headers), data: text, retryAt };
}

async function send(url: string, stopping: AbortSignal, request: BunFetchRequestInit) {
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(REQUEST_MS_MAX)]);
  try {
    const response = await fetch(url, { ...request, redirect: "manual", signal });
    return { response, text: await readText(response) };
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    // OpenSSL's codes for a certificate whose issuer is unknown.
    const isDistrust = /^(UNABLE_TO_|(DEPTH_ZERO_)?SELF_SIGNED_CERT)/.test(String(code));
    const advice = isDistrust ? `; ${TRUST_ADVICE}` : "";
    const reason = code === "ECONNREFUSED" ? REFUSED : messageOf(error) + advice;
    throw new Error(`no answer from ${new URL(url).host}: ${reason}`, { cause: error });
  }
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
