/** What happens to a browser when its member gets in, and when they leave. */
import type { Account } from "../domain/member.ts";
import type { ConsoleServices } from "./services.ts";
import { cookieNames, type Visit } from "./visit.ts";

/** Half a year. */
const DEVICE_AGE_S_MAX = 180 * 24 * 60 * 60;

/**
 * Signs in with a new token, whatever cookie the browser came with. `how`: for the audit, such as "with
 * a password". Without the entry nobody gets in.
 */
export function admit(
  services: ConsoleServices,
  visit: Visit,
  account: Account,
  how: string,
): void {
  services.audit.append({
    deskId: account.desk_id,
    actor: account.id,
    action: "member.signed_in",
    subjectId: account.id,
    detail: how,
  });
  startSession(services, visit, account);
  const device = services.throttle.rememberDevice(account.email);
  visit.cookies.set(cookieNames.device, device, DEVICE_AGE_S_MAX);
}

/** A new token in the place of the one that there was. `account`: see {@link Sessions.start}. */
export function startSession(
  { sessions, now }: ConsoleServices,
  { cookies }: Visit,
  account: Account,
): void {
  const old = cookies.get(cookieNames.session);
  if (old !== null) sessions.end(old);
  cookies.set(cookieNames.session, sessions.start(account, now()), null);
  cookies.clear(cookieNames.visitor);
}

export function endSession({ sessions }: ConsoleServices, { cookies }: Visit): void {
  const token = cookies.get(cookieNames.session);
  if (token !== null) sessions.end(token);
  cookies.clear(cookieNames.session);
}
