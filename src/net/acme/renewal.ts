/** Decides when the certificate in use is renewed. */
import type { Logger } from "pino";
import { type Directory, reasonOf, Refusal } from "./directory.ts";
import { askRenewalInfo, certificateId } from "./renewal-info.ts";
import { timeInWindow, timeToAsk, timeToRenew } from "./schedule.ts";
import type { Renewal, StoredCertificate } from "./state.ts";

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
    const { info, retryAt } = await askRenewalInfo(directory, id, signal);
    if (info === null) return kept;
    const { window, explanation } = info;
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
