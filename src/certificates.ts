/** Where the listeners' certificate comes from: files that the user provides, an ACME directory, or nowhere. */
import type { Logger } from "pino";
import { explainPortInUse, requireFreePorts, type ServeConfig } from "./config.ts";
import { ChallengeServer } from "./net/acme/challenges.ts";
import { AcmeJob } from "./net/acme/job.ts";
import { readCa } from "./net/acme/plan.ts";
import { isValid, readCertificate, requireFolder } from "./net/acme/state.ts";
import type { AcmeStatus } from "./net/acme/status.ts";
import { CertificateWatch } from "./net/certificate-watch.ts";
import type { ConnectionPlan } from "./net/connections.ts";
import { type Certificate, loadCertificate } from "./net/tls.ts";

export class Certificates {
  readonly #config: ServeConfig;
  readonly #log: Logger;
  #watch: CertificateWatch | null = null;
  #acme: AcmeJob | null = null;

  /** Throws `UserError` if files of the user cannot be used. */
  constructor(config: ServeConfig, log: Logger) {
    this.#config = config;
    this.#log = log;
    if (config.acme !== null) readCa(config.acme);
    else if (config.tls !== null) this.#watch = new CertificateWatch(config.tls, log);
  }

  /** Null without TLS, and before the first one was issued. */
  get current(): Certificate | null {
    return this.#watch?.current ?? null;
  }

  /** Null without `--acme-domain`. */
  get acme(): AcmeStatus | null {
    return this.#acme?.status ?? null;
  }

  /** With `--acme-domain`: answers challenges, and orders a certificate when one is due. Call it with the folder's lock held. */
  startAcme(plan: ConnectionPlan, now: () => number, opened: AsyncDisposableStack): void {
    const { acme, dataDir } = this.#config;
    if (acme === null) return;
    const job = new AcmeJob({
      plan: acme,
      dataDir,
      log: this.#log,
      now,
      challenges: new ChallengeServer({
        listen: acme.httpListen,
        connections: plan,
        log: this.#log,
        explain: (error) => explainPortInUse(error, this.#config),
      }),
      onIssued: () => this.#watch?.reload(),
    });
    this.#acme = job;
    opened.defer(() => job.stop());
  }

  /**
   * Waits for the first certificate; one from an earlier start is used at once, even if it has expired.
   * Throws the reason of `stopping` when it is aborted.
   */
  async waitForFirst(stopping: AbortSignal): Promise<void> {
    const { acme, tls, opsListen } = this.#config;
    if (this.#acme === null || acme === null || tls === null) return;
    // Nothing holds the other ports while it waits: say at once if another program has one.
    const ours = [acme.httpListen.port, opsListen?.port ?? 0];
    requireFreePorts(this.#config, new Set(ours));
    await this.#acme.waitForCertificate(stopping);
    this.#watch = new CertificateWatch(tls, this.#log);
  }

  /** Calls `replace` with each new certificate until `stop`. */
  start(replace: (next: Certificate) => void): void {
    this.#watch?.start(replace);
  }

  /** Reads the files again, and orders a certificate at once if the last order failed. */
  reload(): void {
    this.#watch?.reload();
    this.#acme?.retry();
  }

  stop(): void {
    this.#watch?.stop();
  }
}

/** Throws what a start would because of the settings of the certificate. */
export function checkCertificates({ acme, tls, dataDir }: ServeConfig): void {
  if (acme !== null) {
    readCa(acme);
    requireFolder(dataDir);
  } else if (tls !== null) loadCertificate(tls);
}

/** A port that a start can do without: that of the challenges, while there is a valid certificate. */
export function sparePorts({ acme, dataDir }: ServeConfig, now: number): number[] {
  return acme !== null && hasValidCertificate(dataDir, now) ? [acme.httpListen.port] : [];
}

function hasValidCertificate(dataDir: string, now: number): boolean {
  try {
    return isValid(readCertificate(dataDir), now);
  } catch {
    // Another one is ordered.
    return false;
  }
}
