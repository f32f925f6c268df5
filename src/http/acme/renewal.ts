/** When to renew a certificate: as the directory says (ACME Renewal Information, RFC 9773), or at two thirds of its lifetime. */
import { X509Certificate } from "node:crypto";
import type { Logger } from "pino";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/text/time.ts";
import type { Certificate } from "../tls.ts";
import { askDirectory, cutWords, type Directory, reasonOf, Refusal } from "./directory.ts";
import { fingerprintOf, type Lifetime, type Random, type Renewal } from "./state.ts";

/** Renewals spread over the last part of the first two thirds. */
const RENEW_AT = 2 / 3;
const JITTER = 1 / 20;
/** However late a directory wants it, this part of the lifetime is left for retries. */
const LATEST = 9 / 10;

/** How often a directory is asked, whatever its `Retry-After` says (RFC 9773, 4.3.2). */
const ASK_AGAIN_MS_MIN = MINUTE_MS;
const ASK_AGAIN_MS_MAX = DAY_MS;
/** After an answer without `Retry-After`, and after a failure. */
const ASK_AGAIN_MS = 6 * HOUR_MS;

type Window = NonNullable<Renewal["window"]>;

/** A time before or at two thirds of the lifetime. */
export function timeToRenew({ startsAt, expiresAt }: Lifetime, random: Random): number {
  return Math.round(startsAt + (expiresAt - startsAt) * (RENEW_AT - JITTER * random()));
}

/** A time in the window, as RFC 9773, 4.2 says; but never so late that no time is left for retries. */
export function timeInWindow(
  { from, to }: Window,
  { startsAt, expiresAt }: Lifetime,
  random: Random,
): number {
  const at = from + (to - from) * random();
  return Math.round(Math.min(at, startsAt + (expiresAt - startsAt) * LATEST));
}

/** When the directory is asked for renewal information again. */
export function timeToAsk(now: number, retryAt: number | null): number {
  const waitMs = retryAt === null ? ASK_AGAIN_MS : retryAt - now;
  return now + Math.min(ASK_AGAIN_MS_MAX, Math.max(ASK_AGAIN_MS_MIN, waitMs));
}

interface RenewalSources {
  readonly certificate: Certificate;
  /** What was decided about it earlier, or null. */
  readonly before: Renewal | null;
  readonly directory: Directory;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** As the directory says, or else as decided before, or else at two thirds of the lifetime. Never rejects. */
export async function decideRenewal(sources: RenewalSources): Promise<Renewal> {
  const { certificate, before, directory, signal, log } = sources;
  const ownTime = timeToRenew(certificate, Math.random);
  const own = { certificate: fingerprintOf(certificate), at: ownTime, window: null };
  const kept = { ...(before ?? own), ask_at: null };
  try {
    const info = await askRenewalInfo(directory, certificate, signal);
    if (info === null) return kept;
    const { window, explanation, retryAt } = info;
    const ask_at = timeToAsk(directory.now(), retryAt);
    if (Bun.deepEquals(kept.window, window)) return { ...kept, ask_at };
    const at = timeInWindow(window, certificate, Math.random);
    const suggested = { from: new Date(window.from), to: new Date(window.to), explanation };
    log.info({ ...suggested, renew: new Date(at) }, "the directory says when to renew");
    return { ...kept, at, window, ask_at };
  } catch (error) {
    if (!signal.aborted)
      log.warn({ reason: reasonOf(error) }, "the directory does not say when to renew");
    const retryAt = error instanceof Refusal ? error.retryAt : null;
    return { ...kept, ask_at: timeToAsk(directory.now(), retryAt) };
  }
}

/** Null if the certificate has no id, or the directory offers no such information. */
async function askRenewalInfo(directory: Directory, certificate: Certificate, signal: AbortSignal) {
  const id = certificateId(certificate);
  if (id === null) return null;
  const { data } = await askDirectory(directory, {}, signal);
  const { renewalInfo } = JSON.parse(data) as { renewalInfo?: unknown };
  if (typeof renewalInfo !== "string") return null;
  const url = `${renewalInfo.replace(/\/$/, "")}/${id}`;
  const answer = await askDirectory(directory, { url }, signal);
  return { ...readRenewalInfo(JSON.parse(answer.data)), retryAt: answer.retryAt };
}

/** Returns the window, and a page that says why, or null. Throws unless the window has an end after its start. */
export function readRenewalInfo(json: unknown) {
  const { suggestedWindow, explanationURL } = json as Record<string, unknown>;
  const { start, end } = (suggestedWindow ?? {}) as Record<string, unknown>;
  const window: Window = { from: Date.parse(String(start)), to: Date.parse(String(end)) };
  if (!(window.from < window.to)) throw new Error("the renewal information has no valid window");
  return {
    window,
    explanation: typeof explanationURL === "string" ? cutWords(explanationURL) : null,
  };
}

/** In DER: the OID of the extension with the issuer's key identifier (RFC 5280, 4.2.1.1). */
const AUTHORITY_KEY_ID = Buffer.from("0603551d23", "hex");
const KEY_ID_TAG = 0x80;

/**
 * Returns the id of a certificate (RFC 9773, 4.1), made of its issuer's key identifier and its serial number, or
 * null without the first. A library that reads the extension would take 13 MB.
 */
export function certificateId({ cert }: Pick<Certificate, "cert">): string | null {
  const { raw, serialNumber } = new X509Certificate(cert);
  const extension = raw.indexOf(AUTHORITY_KEY_ID);
  // 04 length 30 length 80 length: an octet string that holds a sequence, whose first member is the identifier.
  const start = extension + AUTHORITY_KEY_ID.length + 6;
  const [tag, length = 0] = raw.subarray(start - 2, start);
  if (extension === -1 || tag !== KEY_ID_TAG) return null;
  const keyId = raw.subarray(start, start + length);
  // DER puts a zero before a number whose highest bit is set.
  const zero = /^[89a-f]/i.test(serialNumber) ? "00" : "";
  const serial = Buffer.from(zero + serialNumber, "hex");
  return `${keyId.toString("base64url")}.${serial.toString("base64url")}`;
}
