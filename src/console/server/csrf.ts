/** Recognizes requests that another site makes a browser send (CSRF), by a header and a token. */
import { timingSafeEqual } from "node:crypto";
import { CSRF_FIELD, type Visit } from "./visit.ts";

/** Derived from a cookie that no other site can read or set. */
export function csrfTokenOf(cookie: string): string {
  return new Bun.CryptoHasher("sha256", cookie).update("csrf").digest("base64url");
}

/** Whether the form has the token of this browser's pages. */
export function hasToken({ form, csrfToken }: Pick<Visit, "form" | "csrfToken">): boolean {
  return equals(form.get(CSRF_FIELD) ?? "", csrfToken);
}

/**
 * Current browsers send `Sec-Fetch-Site`. `Origin` alone is not enough: with our
 * `Referrer-Policy: no-referrer` it is `null` for our own forms (Fetch, "append a request Origin header").
 */
export function isSameOrigin(headers: Headers, ownOrigin: string): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  return headers.get("origin") === ownOrigin;
}

export function equals(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
