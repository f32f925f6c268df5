/** Every response of the console is made here, or gets its headers here. */
import { h, type VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { VisitContext } from "../ui/context.ts";
import type { Visit } from "./visit.ts";

/** Forbids what our pages never need. */
export const securityHeaders: Readonly<Record<string, string>> = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  "X-Frame-Options": "DENY",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
};

/** For HTTPS only (RFC 6797, 7.2): browsers then use HTTPS alone for a year. */
export const strictTransport = ["Strict-Transport-Security", "max-age=31536000"] as const;

/** Plain text, for requests that do not come from our pages. */
export function sentence(text: string, status: number): Response {
  return new Response(`${text}\n`, {
    status,
    headers: { "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store" },
  });
}

/** A page. No browser or proxy keeps it, because it may show a key or a name. `visit`: null for nobody in particular. */
export function page(document: VNode, visit: Visit | null, status = 200): Response {
  const html = renderToString(h(VisitContext.Provider, { value: visit }, document));
  return new Response(`<!doctype html>${html}`, {
    status,
    headers: { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" },
  });
}

/** Redirects to a page after a form: the browser asks for it with GET (RFC 9110, 15.4.4). */
export function seeOther(path: string): Response {
  return new Response(null, {
    status: 303,
    headers: { Location: path, "Cache-Control": "no-store" },
  });
}

/** Has no page: only programs send such requests (RFC 9110, 15.5.6). */
export function methodNotAllowed(allowed: readonly string[]): Response {
  return new Response(null, {
    status: 405,
    headers: { Allow: allowed.join(", "), "Cache-Control": "no-store" },
  });
}

/** For the scripts of our own pages. */
export function json(value: unknown, status = 200): Response {
  return Response.json(value, { status, headers: { "Cache-Control": "no-store" } });
}
