/** Where the listeners' certificate comes from: files that the user provides, an ACME directory, or nowhere. */
import type { Logger } from "pino";
import { explainPortInUse, requireFreePorts, type ServeConfig } from "./config.ts";
import { ChallengeServer } from "../http/acme/challenges.ts";
import { AcmeJob } from "../http/acme/job.ts";
import { storeInFolder } from "../http/acme/folder.ts";
import { readCa } from "../http/acme/plan.ts";
import { readCertificate } from "../http/acme/files.ts";
import { storeInNotes } from "../http/acme/shared.ts";
import type { AcmeStatus } from "../http/acme/report.ts";
import type { ServerStorage } from "../domain/storage/storage.ts";
import type { ConnectionPlan } from "../http/limits/connections.ts";
import { messageOf } from "../lib/errors.ts";
import { type Certificate, loadCertificate } from "../http/tls.ts";

/** Polling also sees renames, symbolic links and network disks. */
const POLL_MS = 5_000;

interface AcmeParts {
  readonly connections: ConnectionPlan;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly storage: Pick<ServerStorage, "notes">;
}

export class Certificates {
  readonly #config: ServeConfig;
  readonly #log: Logger;
  #acme: AcmeJob | null = null;
  /** Null without TLS, and before the first one was issued. */
  current: Certificate | null;
  #replace: (next: Certificate) => void = () => {};
  #timer: Timer | undefined;
  /** Why the files cannot replace the current certificate; null if they can. */
  refusal: string | null = null;

  /** `first`: of {@link loadFirst}. */
  constructor(config: ServeConfig, log: Logger, first: Certificate | null) {
    this.#config = config;
    this.#log = log;
    this.current = first;
  }

  /** Null without `--acme-domain`. */
  get acme(): AcmeStatus | null {
    return this.#acme?.status ?? null;
  }

  /** With `--acme-domain`: answers challenges, and orders a certificate when one is due. Call it with the folder's lock held. */
  startAcme(
    { connections, now, storage: { notes } }: AcmeParts,
    opened: AsyncDisposableStack,
  ): void {
    const { acme, dataDir } = this.#config;
    if (acme === null) return;
    const store = notes === null ? storeInFolder(dataDir) : storeInNotes(notes, dataDir, acme);
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
        answerTo: (token) => store.answerTo(token),
      }),
      store,
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

  /** Calls `replace` with each new certificate until `stop`; again with the same one after it has thrown. */
  start(replace: (next: Certificate) => void): void {
    this.#replace = replace;
    this.#timer = setInterval(() => this.#read(), POLL_MS).unref();
  }

  /** Reads the files again, and orders a certificate at once if the last order failed. */
  reload(): void {
    const before = this.current;
    this.#read();
    this.#acme?.retry();
    if (this.current !== before || this.acme?.failure != null) return;
    this.#log.info(`SIGHUP changed nothing: ${this.#describe()}; restart for other settings`);
  }

  #describe(): string {
    if (this.refusal !== null) return "the new certificate cannot be used";
    return this.current === null ? "there is no certificate" : "the certificate is the same";
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
    let next: Certificate;
    try {
      next = loadCertificate(tls);
    } catch (error) {
      // One file has both.
      if (this.#acme !== null) this.#acme.rewrite(current.cert, messageOf(error));
      else {
        this.#refuse(error, (reason) =>
          this.#log.warn({ reason }, "new certificate rejected; the previous one stays in use"),
        );
      }
      return;
    }
    if (next.cert !== current.cert || next.key !== current.key) {
      try {
        this.#replace(next);
      } catch (error) {
        this.#refuse(error, (reason) =>
          this.#log.warn({ reason }, "the new certificate is not in use yet; tries again"),
        );
        return;
      }
      this.current = next;
      this.#log.info({ expires: new Date(next.expiresAt).toISOString() }, "new certificate in use");
    }
    this.refusal = null;
  }

  /** Logs a reason once, until it changes. */
  #refuse(error: unknown, log: (reason: string) => void): void {
    const reason = messageOf(error);
    if (reason === this.refusal) return;
    this.refusal = reason;
    log(reason);
  }
}

/** Returns null without files of the user. Throws `UserError` if what the settings name cannot be used. */
export function loadFirst({ acme, tls }: ServeConfig): Certificate | null {
  if (acme === null) return tls && loadCertificate(tls);
  readCa(acme);
  return null;
}

/** While there is a valid certificate, a start can do without the address of the challenges. */
export function withAddressesToStart(config: ServeConfig, now: number): ServeConfig {
  const isValid = now < (readCertificate(config.dataDir)?.expiresAt ?? 0);
  return isValid ? { ...config, acme: null } : config;
}
