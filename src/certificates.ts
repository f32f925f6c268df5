/** Where the listeners' certificate comes from: files that the user provides, an ACME directory, or nowhere. */
import type { Logger } from "pino";
import { requireFreePorts, type ServeConfig } from "./config.ts";
import { AcmeJob } from "./net/acme/job.ts";
import { readCa } from "./net/acme/plan.ts";
import type { AcmeStatus } from "./net/acme/status.ts";
import { CertificateWatch } from "./net/certificate-watch.ts";
import { type ConnectionPlan, limitConnections } from "./net/connections.ts";
import type { Certificate } from "./net/tls.ts";

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
    const job = new AcmeJob({ plan: acme, dataDir, log: this.#log, now });
    this.#acme = job;
    opened.defer(() => job.stop());
    opened.defer(limitConnections("acme", job.challenges.address, plan, this.#log));
  }

  /**
   * Waits for the first certificate; one from an earlier start is used at once, even if it has expired.
   * Throws the reason of `stopping` when it is aborted.
   */
  async waitForFirst(stopping: AbortSignal): Promise<void> {
    const { tls, opsListen } = this.#config;
    if (this.#acme === null || tls === null) return;
    // Nothing holds the other ports while it waits: say at once if another program has one.
    const bound = [this.#acme.challenges.address, opsListen];
    requireFreePorts(this.#config, new Set(bound.flatMap((address) => address?.port ?? [])));
    await this.#acme.waitForCertificate(stopping);
    this.#watch = new CertificateWatch(tls, this.#log);
  }

  /** Calls `replace` with each new certificate until `stop`. */
  start(replace: (next: Certificate) => void): void {
    this.#watch?.start(replace);
    this.#acme?.start(() => this.#watch?.reload());
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
