/** What happens to a browser when its member gets in, and when they leave. */
import type { Account } from "../../domain/member.ts";
import type { ConsoleServices } from "../web/services.ts";
import { browserName } from "../web/browser-name.ts";
import { cookieNames, type Visit } from "../web/visit.ts";

/** Half a year. */
const DEVICE_AGE_S_MAX = 180 * 24 * 60 * 60;

/** How somebody proved who they are. */
export interface Proof {
  /** For the audit, such as "with a password". */
  readonly how: string;
  /** Null for a password. */
  readonly passkeyId: string | null;
}

/**
 * Signs in with a new token, whatever cookie the browser came with. Without an entry in the audit nobody
 * gets in.
 */
export async function admit(
  services: ConsoleServices,
  visit: Visit,
  account: Account,
  { how, passkeyId }: Proof,
): Promise<void> {
  await services.audit.append({
    deskId: account.desk_id,
    actor: account.id,
    client: visit.address,
    action: "member.signed_in",
    subjectId: account.id,
    detail: how,
  });
  await startSession(services, visit, account, passkeyId);
  const device = services.throttle.rememberDevice(account.email);
  visit.cookies.set(cookieNames.device, device, DEVICE_AGE_S_MAX);
}

/** Replaces the browser's token, if it has one. `account` and `passkeyId`: see {@link Sessions.start}. */
export async function startSession(
  { sessions, now }: ConsoleServices,
  { cookies, request, address }: Visit,
  account: Account,
  passkeyId: string | null,
): Promise<void> {
  const old = cookies.get(cookieNames.session);
  if (old !== null) sessions.end(old);
  const browser = browserName(request.headers.get("user-agent"));
  const token = await sessions.start(account, { passkeyId, browser, address }, now());
  cookies.set(cookieNames.session, token, null);
  cookies.clear(cookieNames.visitor);
}

export function endSession({ sessions }: ConsoleServices, { cookies }: Visit): void {
  const token = cookies.get(cookieNames.session);
  if (token !== null) sessions.end(token);
  cookies.clear(cookieNames.session);
}
