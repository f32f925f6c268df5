/** Signs a browser in and out. */
import { NEW_BROWSER } from "../../../domain/audit/audit.ts";
import type { Account } from "../../../domain/member/member.ts";
import type { ConsoleServices } from "../../server/services.ts";
import { shorten } from "../../ui/words.ts";
import { cookieNames, type Visit } from "../../server/visit.ts";

/** Half a year. */
const DEVICE_AGE_S_MAX = 180 * 24 * 60 * 60;

/** How somebody proved who they are. */
interface Proof {
  /** For the audit, such as "with a password". */
  readonly how: string;
  /** Null for a password. */
  readonly passkeyId: string | null;
}

/**
 * Signs in with a new token, whatever cookie the browser sent. Writes the audit first, so that nobody gets
 * in without an entry.
 */
export async function admit(
  services: ConsoleServices,
  visit: Visit,
  account: Account,
  { how, passkeyId }: Proof,
): Promise<void> {
  const device = visit.cookies.get(cookieNames.device);
  const isKnown = services.throttle.isKnownDevice(account.email, device);
  await services.audit.append({
    deskId: account.desk_id,
    actor: account.id,
    client: visit.address,
    action: "member.signed_in",
    subjectId: account.id,
    detail: isKnown ? how : how + NEW_BROWSER,
  });
  await startSession(services, visit, account, passkeyId);
  const remembered = services.throttle.rememberDevice(account.email);
  visit.cookies.set(cookieNames.device, remembered, DEVICE_AGE_S_MAX);
}

/** Replaces the browser's token, if it has one. `account` and `passkeyId`: see {@link Sessions.start}. */
export async function startSession(
  { sessions, now }: ConsoleServices,
  { cookies, request, address }: Visit,
  account: Account,
  passkeyId: string | null,
): Promise<void> {
  const old = cookies.get(cookieNames.session);
  if (old !== null) await sessions.end(old);
  const browser = browserName(request.headers.get("user-agent"));
  const token = await sessions.start(account, { passkeyId, browser, address }, now());
  cookies.set(cookieNames.session, token, null);
  cookies.clear(cookieNames.visitor);
}

/** Also if it throws, the browser has no session any more. */
export async function endSession({ sessions }: ConsoleServices, { cookies }: Visit): Promise<void> {
  const token = cookies.get(cookieNames.session);
  cookies.clear(cookieNames.session);
  if (token !== null) await sessions.end(token);
}

/** The first that matches counts: each browser also claims to be those after it. */
const browsers = [
  [/\bEdg(?:e|A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/(?:Chrome|CriOS)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
] as const;
const systems = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bLinux\b/, "Linux"],
] as const;

/** Names the browser of a `User-Agent` in a few words, so that members can tell their sessions apart. */
export function browserName(userAgent: string | null): string {
  if (userAgent === null || userAgent === "") return "Unknown browser";
  const browser = browsers.find(([pattern]) => pattern.test(userAgent))?.[1];
  const system = systems.find(([pattern]) => pattern.test(userAgent))?.[1];
  if (browser === undefined) return shorten(userAgent);
  return system === undefined ? browser : `${browser} on ${system}`;
}
