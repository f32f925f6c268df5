/** ACME Renewal Information (RFC 9773): the directory says when it wants a certificate renewed. */
import type { X509Certificate } from "node:crypto";
import { cutWords, type Directory } from "./directory.ts";
import type { Span } from "./schedule.ts";

interface RenewalInfo {
  readonly window: Span;
  /** A page that says why, or null. */
  readonly explanation: string | null;
}

/** The directory's answer about a certificate, and when to ask again; null info: it does not offer any. */
export async function askRenewalInfo(
  directory: Directory,
  id: string,
  signal: AbortSignal,
): Promise<{ readonly info: RenewalInfo | null; readonly retryAt: number | null }> {
  const { text } = await directory.ask(directory.url, {}, signal);
  const { renewalInfo } = JSON.parse(text) as { renewalInfo?: unknown };
  if (typeof renewalInfo !== "string") return { info: null, retryAt: null };
  const url = `${renewalInfo.replace(/\/$/, "")}/${id}`;
  const answer = await directory.ask(url, {}, signal);
  return { info: readRenewalInfo(JSON.parse(answer.text)), retryAt: answer.retryAt };
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
