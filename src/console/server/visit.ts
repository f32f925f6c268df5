/** One request to the console, as its pages see it. */
import type { Outage } from "../../domain/storage/append.ts";
import type { MemberAuthor } from "../../domain/storage/author.ts";
import { SignedOutError } from "../../lib/errors.ts";
import { redactKeys } from "../../domain/key/key.ts";
import { isUlid } from "../../domain/signal/id.ts";
import { sources, types } from "../../domain/signal/signal.ts";
import type { SignedIn, Sessions } from "./sessions/sessions.ts";

export interface Visit {
  readonly request: Request;
  readonly url: URL;
  /** Parameters of the path: `id` in `/keys/:id`. */
  readonly params: Readonly<Record<string, string>>;
  /** The fields of a form; for any method but POST, those of the address that {@link typedFields} returns. */
  readonly form: URLSearchParams;
  /** Goes into every form, as the field {@link CSRF_FIELD}. */
  readonly csrfToken: string;
  readonly requestId: string;
  /** The client's address, which a trusted proxy may tell. */
  readonly address: string;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly member: SignedIn | null;
  /** Null while signals are stored. */
  readonly outage: Outage | null;
  readonly cookies: Cookies;
}

/** A visit of somebody who is signed in. */
export interface MemberVisit extends Visit {
  readonly member: SignedIn;
}

/** Cookies to be set with the response. */
export interface Cookies {
  get(name: CookieName): string | null;
  /** `maxAgeS`: null for the time that the browser is open. */
  set(name: CookieName, value: string, maxAgeS: number | null): void;
  clear(name: CookieName): void;
}

/** `__Host-`: of this host alone, over HTTPS alone (RFC 6265bis, 4.1.3.2; browsers take loopback for it). */
export const cookieNames = {
  session: "__Host-signalbox",
  /** What the sign-in form's token is made from, for a visitor who is not signed in. */
  visitor: "__Host-signalbox-visitor",
  /** Names a browser in which a member has signed in before. */
  device: "__Host-signalbox-device",
} as const;
export type CookieName = (typeof cookieNames)[keyof typeof cookieNames];

export const CSRF_FIELD = "csrf";
/** The field of a form with an authenticator's answer, as JSON. */
export const RESPONSE_FIELD = "response";

/** Fields that survive the end of a session, in the address of the page with the form: never a secret. */
export const KEPT_FIELDS: readonly string[] = [
  "label",
  "scope",
  "expires",
  "overlap",
  "email",
  "role",
  "networks",
  "rate",
  // Checkboxes, each named by its value.
  ...sources,
  ...types,
];
const KEPT_CHARACTERS_MAX = 1_000;

/** Returns what may be in an address of what somebody typed. */
export function typedFields(form: URLSearchParams): URLSearchParams {
  const kept = [...form]
    .filter(([name]) => KEPT_FIELDS.includes(name))
    .map(([name, text]) => [name, redactKeys(text)]);
  const typed = new URLSearchParams(kept);
  return typed.toString().length > KEPT_CHARACTERS_MAX ? new URLSearchParams() : typed;
}

/** Whether the session still holds: it may have ended since the request began. */
export async function isStillSignedIn(
  { sessions, now }: { sessions: Sessions; now: () => number },
  { cookies }: MemberVisit,
): Promise<boolean> {
  return sessions.holds(cookies.get(cookieNames.session) ?? "", now());
}

/** Throws if the session has ended. */
export async function requireSession(
  services: Parameters<typeof isStillSignedIn>[0],
  visit: MemberVisit,
): Promise<void> {
  if (!(await isStillSignedIn(services, visit))) throw new SignedOutError();
}

/** Who makes the changes of this request, for the audit. They are refused once the member is signed out everywhere. */
export function authorOf({ member, address }: MemberVisit): MemberAuthor {
  return { memberId: member.memberId, signedOutAt: member.signedOutAt, client: address };
}

/** Returns null for an invalid cursor: the newest page. */
export function readCursor(url: URL, name: "before" | "after"): string | null {
  const text = url.searchParams.get(name);
  return text !== null && isUlid(text) ? text : null;
}
