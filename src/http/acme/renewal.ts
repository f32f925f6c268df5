/** Decides when the certificate in use is renewed: as the directory says (ACME Renewal Information, RFC 9773), or at two thirds of its lifetime. */
import type { X509Certificate } from "node:crypto";
import type { Logger } from "pino";
import { cutWords, type Directory, reasonOf, Refusal } from "./directory.ts";
import { type Span, timeInWindow, timeToAsk, timeToRenew } from "./schedule.ts";
import type { Renewal } from "./state.ts";
import type { StoredCertificate } from "./store.ts";

interface RenewalSources {
  readonly certificate: StoredCertificate;
  /** What was decided about it earlier, or null. */
  readonly before: Renewal | null;
  readonly directory: Directory;
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly now: () => number;
}

/** As the directory says, or else as decided before, or else at two thirds of the lifetime. Never rejects. */
export async function decideRenewal(sources: RenewalSources): Promise<Renewal> {
  const { certificate, before, directory, signal, log, now } = sources;
  const { fingerprint, validity, leaf } = certificate;
  const id = before === null ? await certificateId(leaf).catch(() => null) : before.id;
  const ownTime = timeToRenew(validity, Math.random);
  const own = { certificate: fingerprint, id, at: ownTime, window: null };
  const kept = { ...(before ?? own), ask_at: null };
  if (id === null) return kept;
  try {
    const info = await askRenewalInfo(directory, id, signal);
    if (info === null) return kept;
    const { window, explanation, retryAt } = info;
    const ask_at = timeToAsk(now(), retryAt);
    const isSame = before?.window?.from === window.from && before.window.to === window.to;
    if (isSame) return { ...kept, ask_at };
    const at = timeInWindow(window, validity, Math.random);
    const suggested = { from: new Date(window.from), to: new Date(window.to), explanation };
    log.info({ ...suggested, renew: new Date(at) }, "the directory says when to renew");
    return { ...kept, at, window, ask_at };
  } catch (error) {
    if (!signal.aborted)
      log.warn({ reason: reasonOf(error) }, "the directory does not say when to renew");
    const retryAt = error instanceof Refusal ? error.retryAt : null;
    return { ...kept, ask_at: timeToAsk(now(), retryAt) };
  }
}

interface RenewalInfo {
  readonly window: Span;
  /** A page that says why, or null. */
  readonly explanation: string | null;
}

/** Returns what the directory says about a certificate, and when to ask again. Null if it offers no such information. */
async function askRenewalInfo(directory: Directory, id: string, signal: AbortSignal) {
  const { text } = await directory.ask(directory.url, {}, signal);
  const { renewalInfo } = JSON.parse(text) as { renewalInfo?: unknown };
  if (typeof renewalInfo !== "string") return null;
  const url = `${renewalInfo.replace(/\/$/, "")}/${id}`;
  const answer = await directory.ask(url, {}, signal);
  return { ...readRenewalInfo(JSON.parse(answer.text)), retryAt: answer.retryAt };
}

/** Throws unless the answer has a window with an end after its start. */
export function readRenewalInfo(json: unknown): RenewalInfo {
  const { suggestedWindow, explanationURL } = json as Record<string, unknown>;
  const { start, end } = (suggestedWindow ?? {}) as Record<string, unknown>;
  const window = { from: Date.parse(String(start)), to: Date.parse(String(end)) };
  if (!(window.from < window.to)) throw new Error("the renewal information has no valid window");
  return {
    window,
    explanation: typeof explanationURL === "string" ? cutWords(explanationURL) : null,
  };
}

/**
 * Returns the id of a certificate (RFC 9773, 4.1), made of its issuer's key identifier and its serial number, or
 * null without the first. Loads a library, as an order does.
 */
export async function certificateId({ raw }: Pick<X509Certificate, "raw">): Promise<string | null> {
  // The bundler would run it too late otherwise.
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  const certificate = new x509.X509Certificate(raw);
  const { keyId } = certificate.getExtension(x509.AuthorityKeyIdentifierExtension) ?? {};
  if (keyId === undefined) return null;
  const serial = Buffer.from(certificate.serialNumber, "hex");
  // The library leaves out the zero that DER puts before a number whose highest bit is set.
  const zero = (serial[0] ?? 0) > 0x7f ? [0] : [];
  const parts = [Buffer.from(keyId, "hex"), Buffer.from([...zero, ...serial])];
  return parts.map((part) => part.toString("base64url")).join(".");
}
