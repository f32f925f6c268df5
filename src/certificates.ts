/** Where the listeners' certificate comes from: files that the user provides, an ACME directory, or nowhere. */
import type { Logger } from "pino";
import { explainPortInUse, requireFreePorts, type ServeConfig } from "./config.ts";
import { ChallengeServer } from "./net/acme/challenges.ts";
import { AcmeJob } from "./net/acme/job.ts";
import { readCa } from "./net/acme/plan.ts";
import { isValid, readCertificate, requireFolder } from "./net/acme/store.ts";
import type { AcmeStatus } from "./net/acme/status.ts";
import type { ConnectionPlan } from "./net/connections.ts";
import { messageOf } from "./domain/errors.ts";
import { type Certificate, loadCertificate } from "./net/tls.ts";

/** Polling also sees renames, symbolic links and network disks. */
const POLL_MS = 5_000;

export class Certificates {
  readonly #config: ServeConfig;
  readonly #log: Logger;
  #acme: AcmeJob | null = null;
  /** Null without TLS, and before the first one was issued. */
  current: Certificate | null = null;
  #replace: (next: Certificate) => void = () => {};
  #timer: Timer | undefined;
  /** Why the files cannot replace the current certificate; null if they can. */
  refusal: string | null = null;

  /** Throws `UserError` if files of the user cannot be used. */
  constructor(config: ServeConfig, log: Logger) {
    this.#config = config;
    this.#log = log;
    if (config.acme !== null) readCa(config.acme);
    else if (config.tls !== null) this.current = loadCertificate(config.tls);
  }

  /** Null without `--acme-domain`. */
  get acme(): AcmeStatus | null {
    return this.#acme?.status ?? null;
  }

  /** With `--acme-domain`: answers challenges, and orders a certificate when one is due. Call it with the folder's lock held. */
  startAcme(connections: ConnectionPlan, now: () => number, opened: AsyncDisposableStack): void {
    const { acme, dataDir } = this.#config;
    if (acme === null) return;
    const job = new AcmeJob({
      plan: acme,
      dataDir,
      log: this.#log,
      now,
      challenges: new ChallengeServer({
        listen: acme.httpListen,
        connections,
        log: this.#log,
        explain: (error) => explainPortInUse(error, this.#config),
      }),
      onIssued: () => this.#read(),
    });
    this.#acme = job;
    opened.defer(() => job.stop());
  }

  /**
   * Waits for the first certificate; one from an earlier start is used at once, even if it has expired.
   * Calls `onWait` if it has to wait, which may take days. Throws the reason of `stopping` when it is aborted.
   */
  async waitForFirst(stopping: AbortSignal, onWait: () => void): Promise<void> {
    const { acme, tls, opsListen } = this.#config;
    if (this.#acme === null || acme === null || tls === null) return;
    // Nothing holds the other ports while it waits: say at once if another program has one.
    requireFreePorts({ ...this.#config, acme: null }, new Set([opsListen?.port ?? 0]));
    if (!this.#acme.hasCertificate) onWait();
    await this.#acme.waitForCertificate(stopping);
    this.current = loadCertificate(tls);
  }

  /** Calls `replace` with each new certificate until `stop`. */
  start(replace: (next: Certificate) => void): void {
    this.#replace = replace;
    this.#timer = setInterval(() => this.#read(), POLL_MS).unref();
  }

  /** Reads the files again, and orders a certificate at once if the last order failed. */
  reload(): void {
    this.#read();
    this.#acme?.retry();
  }

  /** Later reloads change no listener. */
  stop(): void {
    clearInterval(this.#timer);
    this.#replace = () => {};
  }

  /** Keeps the current certificate while the files are unusable: they may be halfway through a change. */
  #read(): void {
    const { tls } = this.#config;
    const { current } = this;
    if (tls === null || current === null) return;
    try {
      const next = loadCertificate(tls);
      this.refusal = null;
      if (next.cert === current.cert && next.key === current.key) return;
      this.#replace(next);
      this.current = next;
      this.#log.info({ expires: new Date(next.expiresAt).toISOString() }, "new certificate in use");
    } catch (error) {
      const reason = messageOf(error);
      // One file has both.
      if (this.#acme !== null) return this.#acme.rewrite(current.cert, reason);
      if (reason === this.refusal) return;
      this.refusal = reason;
      this.#log.warn({ reason }, "new certificate rejected; the previous one stays in use");
    }
  }
}

/** Throws what a start would because of the settings of the certificate. */
export function checkCertificates({ acme, tls }: ServeConfig): void {
  if (acme !== null) readCa(acme);
  else if (tls !== null) loadCertificate(tls);
}

/** Throws what a start would because of the folder of the certificate. Call it after checking the data folder. */
export function checkAcmeFolder({ acme, dataDir }: ServeConfig): void {
  if (acme !== null) requireFolder(dataDir);
}

/** While there is a valid certificate, a start can do without the address of the challenges. */
export function withAddressesToStart(config: ServeConfig, now: number): ServeConfig {
  return hasValidCertificate(config.dataDir, now) ? { ...config, acme: null } : config;
}

function hasValidCertificate(dataDir: string, now: number): boolean {
  try {
    return isValid(readCertificate(dataDir), now);
  } catch {
    // Another one is ordered.
    return false;
  }
}
