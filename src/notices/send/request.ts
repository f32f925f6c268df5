/**
 * A `POST` to a URL that somebody typed. It goes only to an address that was checked: the connection is made to that
 * address, so that a name with another answer a moment later leads nowhere else, and TLS still checks the name.
 */
import { lookup } from "node:dns/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { systemCode } from "../../lib/errors.ts";
import { SECOND_MS } from "../../lib/text/time.ts";
import { type AllowedHost, allowedBy, bare, type Reach, reachOf, writeAllowed } from "../allow.ts";

export const SEND_MS_MAX = 10 * SECOND_MS;
export const ANSWER_BYTES_MAX = 4 * 1024;

export interface Answer {
  readonly status: number;
  /** The beginning. */
  readonly text: string;
  /** What `Retry-After` says in seconds; null: nothing. */
  readonly retryAfterS: number | null;
}

interface Request {
  readonly url: URL;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Rules {
  readonly allow: readonly AllowedHost[];
  /** Only hosts of `allow`; otherwise also any public one. */
  readonly isListedOnly: boolean;
  readonly resolve?: Resolve;
  readonly msMax?: number;
  /** The connection's way out of trust, for tests; null: as the system says. */
  readonly ca?: string;
}

type Resolve = (host: string) => Promise<readonly string[]>;

/** Why a request was not made, or had no answer, in words for people. */
export class SendError extends Error {}

/** Throws {@link SendError}. */
export async function post(request: Request, rules: Rules, stopping: AbortSignal): Promise<Answer> {
  const { msMax = SEND_MS_MAX } = rules;
  const late = AbortSignal.timeout(msMax);
  const signal = AbortSignal.any([late, stopping]);
  try {
    const addresses = await unlessAborted(addressesFor(request.url, rules), signal);
    return await unlessAborted(exchange(request, addresses, rules, signal), signal);
  } catch (error) {
    if (error instanceof SendError) throw error;
    if (late.aborted) throw new SendError(`no answer within ${msMax / SECOND_MS} seconds`);
    throw new SendError(describe(error, request.url));
  }
}

/** Returns the addresses that the request may go to. */
async function addressesFor(
  url: URL,
  { allow, isListedOnly, resolve = resolveName }: Rules,
): Promise<readonly string[]> {
  const host = bare(url);
  const entry = allowedBy(url, allow);
  if (entry === null && isListedOnly) {
    throw new SendError(`--notify-allow does not list ${nameOf(url)}: ask an administrator`);
  }
  const all = isIP(host) === 0 ? await resolve(host) : [host];
  const mayGo = (reach: Reach): boolean =>
    // Unencrypted only where an administrator has named a private host.
    (reach === "public" && url.protocol === "https:") ||
    (reach === "private" && entry?.mayBePrivate === true);
  const good = all.filter((address) => mayGo(reachOf(address)));
  if (good.length > 0) return good;
  const [address = ""] = all;
  switch (reachOf(address)) {
    case "never":
      throw new SendError(`${host} has the address ${address}, which notices never go to`);
    case "private":
      throw new SendError(
        `${host} has the private address ${address}: an administrator may allow it with --notify-allow ${nameOf(url)}`,
      );
    case "public":
      throw new SendError(`${host} is a public host, which needs https://`);
  }
}

function nameOf(url: URL): string {
  const port = url.port === "" ? null : Number(url.port);
  return writeAllowed({ host: bare(url), port, mayBePrivate: false });
}

async function resolveName(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

function exchange(
  { url, body, headers }: Request,
  addresses: readonly string[],
  { ca }: Rules,
  signal: AbortSignal,
): Promise<Answer> {
  const pinned: LookupFunction = (_host, _options, done) =>
    done(
      null,
      addresses.map((address) => ({ address, family: isIP(address) })),
    );
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = send(url, {
      method: "POST",
      headers: { ...headers, "content-length": Buffer.byteLength(body) },
      // A connection of its own: another one may be to an address that was not checked.
      agent: false,
      lookup: pinned,
      signal,
      ...(ca === undefined ? {} : { ca }),
    });
    request.on("error", reject);
    request.on("response", (response) => {
      readStart(response).then(resolve, reject);
      response.on("close", () => request.destroy());
    });
    request.end(body);
  });
}

/** Reads no more than {@link ANSWER_BYTES_MAX}, and ends the connection. */
function readStart(response: IncomingMessage): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const parts: Buffer[] = [];
  let bytes = 0;
  const end = (): void => {
    const text = Buffer.concat(parts).subarray(0, ANSWER_BYTES_MAX).toString("utf8");
    const seconds = Number(response.headers["retry-after"]);
    const retryAfterS = seconds > 0 && Number.isFinite(seconds) ? seconds : null;
    resolve({ status: response.statusCode ?? 0, text, retryAfterS });
  };
  response.on("data", (part: Buffer) => {
    parts.push(part);
    bytes += part.length;
    if (bytes < ANSWER_BYTES_MAX) return;
    end();
    response.destroy();
  });
  response.on("end", end);
  response.on("error", reject);
  return promise;
}

/** A name's look-up cannot be stopped. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason as Error);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  // Whichever is later fails unheard.
  work.catch(() => {});
  promise.catch(() => {});
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", abort));
}

function describe(error: unknown, url: URL): string {
  const host = bare(url);
  const code = systemCode(error);
  switch (code) {
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "DNS_ENOTFOUND":
      return `there is no address for ${host} (${code})`;
    case "ECONNREFUSED":
      return `${host} refuses the connection`;
    case "ECONNRESET":
      return `${host} ended the connection without an answer`;
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return `the certificate of ${host} is for another name`;
    default:
      return `${host} cannot be reached (${code})`;
  }
}
