/** When the next order, and the next question about a renewal, are due. Times are epoch milliseconds. */
import type { AcmePlan } from "./plan.ts";
import type { AcmeState, Renewal } from "./state.ts";
import type { StoredCertificate } from "./store.ts";

export interface Situation {
  readonly plan: Pick<AcmePlan, "domains" | "directory">;
  readonly state: AcmeState;
  /** In use; null: none yet. */
  readonly certificate: StoredCertificate | null;
}

/** Infinity: not decided yet. */
export function orderTime({ plan, state, certificate }: Situation): number {
  const { retry_at, failure, issuer } = state;
  if (certificate === null || !isWanted(certificate, issuer, plan)) {
    // Another order that succeeded does not delay this one.
    return failure === null ? 0 : retry_at;
  }
  // Its time is decided next, without the directory if that does not answer.
  return Math.max(retry_at, renewalOf(state, certificate)?.at ?? Infinity);
}

/** When the directory is asked when it wants the certificate renewed. Infinity: never. */
export function questionTime({ state, certificate }: Situation): number {
  if (certificate === null) return Infinity;
  const renewal = renewalOf(state, certificate);
  return renewal === null ? 0 : (renewal.ask_at ?? Infinity);
}

/** What was decided about the certificate in use. */
export function renewalOf(
  { renewal }: AcmeState,
  certificate: StoredCertificate | null,
): Renewal | null {
  return renewal?.certificate === certificate?.fingerprint ? renewal : null;
}

/** Whether it is of this directory and for all names. */
function isWanted(
  certificate: StoredCertificate,
  issuer: string | null,
  { domains, directory }: Situation["plan"],
): boolean {
  if (issuer !== null && issuer !== directory) return false;
  return missingNames(certificate, domains).length === 0;
}

/** Those that the certificate is not for; none without one. */
export function missingNames(
  certificate: StoredCertificate | null,
  domains: readonly string[],
): string[] {
  if (certificate === null) return [];
  return domains.filter((name) => certificate.leaf.checkHost(name) === undefined);
}
