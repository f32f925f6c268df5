/** ACME Renewal Information (RFC 9773): the directory says when it wants a certificate renewed. */
import { X509Certificate } from "node:crypto";
import type { Directory } from "./directory.ts";
import type { Span } from "./schedule.ts";

export interface RenewalInfo {
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
  return { window, explanation: typeof explanationURL === "string" ? explanationURL : null };
}

/** The extension's OID, 2.5.29.35, and the tag of the text that holds its value. */
const AUTHORITY_KEY_ID = Buffer.from("0603551d2304", "hex");
const SEQUENCE = 0x30;
const KEY_IDENTIFIER = 0x80;

/**
 * The id of a certificate (RFC 9773, 4.1): its issuer's key identifier and its serial number. Null if it has
 * no key identifier, or one that public certificates never have.
 */
export function certificateId(pem: string): string | null {
  const { raw, serialNumber } = new X509Certificate(pem);
  const at = raw.indexOf(AUTHORITY_KEY_ID);
  // After the OID: length, then SEQUENCE { [0] key identifier }. All lengths have one byte.
  const [, sequence, , tag, length = 0] = raw.subarray(at + AUTHORITY_KEY_ID.length);
  if (at === -1 || sequence !== SEQUENCE || tag !== KEY_IDENTIFIER || length > 64) return null;
  const start = at + AUTHORITY_KEY_ID.length + 5;
  const keyId = raw.subarray(start, start + length);
  return `${keyId.toString("base64url")}.${integerBytes(serialNumber).toString("base64url")}`;
}

/** The bytes of a positive integer in DER: a zero comes first if the highest bit is set. */
function integerBytes(hex: string): Buffer {
  const digits = hex.replace(/^0+(?=.)/, "");
  const bytes = Buffer.from(digits.padStart(2 * Math.ceil(digits.length / 2), "0"), "hex");
  return (bytes[0] ?? 0) > 0x7f ? Buffer.concat([Buffer.of(0), bytes]) : bytes;
}
