/** Obtains the certificate of `--acme-domain` and renews it, for as long as the server runs. */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { messageOf } from "../../lib/errors.ts";
import { MINUTE_MS } from "../../lib/text/time.ts";
import { formatAddress } from "../address.ts";
import { type Certificate, loadCertificate, missingNames } from "../tls.ts";
import type { ChallengeServer } from "./challenges.ts";
import { type Directory, reasonOf, Refusal } from "./directory.ts";
import * as files from "./files.ts";
import { orderCertificate } from "./order.ts";
import { type AcmePlan, readCa } from "./plan.ts";
import { certificateId, decideRenewal } from "./renewal.ts";
import { CertificateRepair } from "./repair.ts";
import type { AcmeStore } from "./store.ts";
import { type AcmeStatus, reportFailure, reportStart } from "./report.ts";
import {
  type AcmeState,
  adoptState,
  type Asked,
  askedOf,
  boundWaits,
  failedState,
  initialState,
  orderInterval,
  orderTime,
  questionTime,
  renewalOf,
  resumeState,
} from "./state.ts";

/** An order takes seconds; the directory may let a client wait for its decision. */
const ORDER_MS_MAX = 5 * MINUTE_MS;

interface AcmeOptions {
  readonly plan: AcmePlan;
  readonly dataDir: string;
  readonly log: Logger;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly challenges: ChallengeServer;
  readonly store: AcmeStore;
  /** The folder has another certificate. */
  readonly onIssued: () => void;
}

export class AcmeJob {
  readonly #options: AcmeOptions;
  readonly #directory: Directory;
  readonly #asked: Asked;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;
  readonly #first = Promise.withResolvers<void>();
  #state: AcmeState;
  #certificate: Certificate | null;
  #wake: () => void = () => {};
  readonly #repair: CertificateRepair;
  /** Why the certificate of other servers could not be read, as it was logged last. */
  #newsFailure = "";
  #hasHeard = false;

  /**
   * Call it with the folder's lock held. Throws `UserError`: for `--acme-ca`, and, without a valid certificate,
   * for the address of the challenges.
   */
  constructor(options: AcmeOptions) {
    const { plan, dataDir, now, log, challenges } = options;
    this.#options = options;
    const ca = readCa(plan);
    this.#directory = { url: plan.directory, ca, now };
    files.makeFolder(dataDir);
    this.#certificate = files.readCertificate(dataDir, (reason) =>
      log.warn({ reason }, "the stored certificate cannot be used: another one is ordered"),
    );
    this.#asked = askedOf(plan, ca);
    this.#repair = new CertificateRepair(dataDir, log);
    this.#state = boundWaits(resumeState(files.readState(dataDir), this.#asked), now());
    reportStart(dataDir, log, this.status, now());
    if (this.#certificate !== null && now() < this.#certificate.expiresAt) this.#tryToListen();
    else challenges.listen(now());
    if (this.#certificate !== null) this.#first.resolve();
    this.#ended = this.#run();
  }

  get status(): AcmeStatus {
    const { plan, now, challenges } = this.#options;
    const { domains, directory } = plan;
    const { failure, held_until: heldUntil } = this.#state;
    const next = this.#orderTime;
    return {
      domains,
      missing: missingNames(domains, this.#certificate),
      directory,
      http_listen: formatAddress(challenges.address),
      next_attempt_at: Number.isFinite(next) ? next : null,
      held_until: heldUntil > now() ? heldUntil : null,
      failure: challenges.failure ?? failure,
      is_listening: challenges.failure === null,
    };
  }

  /** It may have expired. */
  get hasCertificate(): boolean {
    return this.#certificate !== null;
  }

  /** Resolves when there is a certificate, which may have expired. Throws when `signal` is aborted. */
  async waitForCertificate(signal: AbortSignal): Promise<void> {
    if (this.#certificate !== null) return;
    const { domains, directory, http_listen } = this.status;
    this.#options.log.info(
      { domains, directory, http_listen },
      "waiting for a certificate: until then, no signals are accepted; the directory must reach port 80 of each name",
    );
    signal.throwIfAborted();
    await Promise.race([this.#first.promise, once(signal, "abort")]);
    signal.throwIfAborted();
  }

  /** Ends the wait after a failure, unless the directory asked for it. */
  retry(): void {
    this.#tryToListen();
    const { failure, held_until } = this.#state;
    if (failure === null) return;
    this.#state = { ...this.#state, retry_at: held_until };
    if (held_until > this.#options.now()) {
      this.#options.log.info(
        { next_attempt: new Date(held_until).toISOString() },
        "the directory asked to wait: no order before next_attempt",
      );
    }
    this.#wake();
  }

  /** Writes the file of the certificate in use again. `reason`: why it cannot be used. */
  rewrite(text: string, reason: string): void {
    this.#repair.plan(text, reason);
    this.#wake();
  }

  /** Aborts an order. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    await this.#ended;
    await this.#options.challenges.stop();
  }

  /** Otherwise signals are taken until the certificate expires. */
  #tryToListen(): void {
    const { challenges, log, now } = this.#options;
    try {
      challenges.listen(now());
    } catch (error) {
      log.error(
        { reason: messageOf(error) },
        "the certificate cannot be renewed, because this server cannot listen for challenges; when it can, run: systemctl reload signalbox",
      );
    }
  }

  get #orderTime(): number {
    return orderTime(this.#options.plan, this.#state, this.#certificate);
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      // Between orders, so that it never replaces a new certificate.
      await this.#repair.run();
      await this.#hear();
      const now = this.#options.now();
      this.#state = boundWaits(this.#state, now);
      const certificate = this.#certificate;
      const [orderAt, askAt] = [this.#orderTime, questionTime(this.#state, certificate)];
      if (now >= orderAt) await this.#orderAlone();
      else if (certificate !== null && now >= askAt) await this.#decide(certificate);
      else await this.#sleep(Math.min(orderAt, askAt) - now);
    }
  }

  /** Takes what another server has obtained. */
  async #hear(): Promise<void> {
    const { store, dataDir, log } = this.#options;
    try {
      const { certificate, state } = await store.news();
      this.#newsFailure = "";
      if (state !== null) this.#state = adoptState(state, this.#asked, !this.#hasHeard);
      this.#hasHeard = true;
      if (certificate === null || certificate === this.#certificate?.cert) return;
      await files.saveCertificate(dataDir, certificate);
      this.#load();
      this.#announce("certificate from another server");
    } catch (error) {
      const reason = messageOf(error);
      if (reason === this.#newsFailure) return;
      this.#newsFailure = reason;
      log.warn({ reason }, "the certificate of the other servers cannot be read");
    }
  }

  /** Reads the certificate that the folder has now. */
  #load(): Certificate {
    this.#repair.forget();
    return (this.#certificate = loadCertificate(files.acmeFiles(this.#options.dataDir)));
  }

  #announce(message: string): void {
    const { plan, log, onIssued } = this.#options;
    log.info({ domains: plan.domains, directory: plan.directory }, message);
    this.#first.resolve();
    onIssued();
  }

  async #orderAlone(): Promise<void> {
    const { store, now } = this.#options;
    try {
      const isAlone = await store.alone(async (lost) => {
        // Another server may have ended its order just now.
        await this.#hear();
        const ending = AbortSignal.any([this.#stopping.signal, lost]);
        if (now() >= this.#orderTime) await this.#order(ending);
      });
      if (!isAlone) await this.#sleep(Infinity);
    } catch (error) {
      if (!this.#stopping.signal.aborted) await this.#fail(error, this.#stopping.signal);
    }
  }

  async #order(ending: AbortSignal): Promise<void> {
    const { plan, store, now, challenges } = this.#options;
    const signal = AbortSignal.any([ending, AbortSignal.timeout(ORDER_MS_MAX)]);
    try {
      // On a full disk, nothing is ordered that could not be kept.
      await store.saveState(this.#state);
      challenges.listen(now());
      const issued = await orderCertificate({
        plan,
        directory: this.#directory,
        accountKey: await store.accountKey(),
        replaces: this.#replaces(),
        offer: (token, answer) => store.offer(token, answer),
        signal,
      });
      await store.saveCertificate(issued);
      const retry_at = now() + orderInterval(this.#load());
      await this.#save({ ...initialState(this.#state, plan.directory), retry_at });
      this.#announce("certificate issued");
    } catch (error) {
      if (!ending.aborted) await this.#fail(error, signal);
      else if (!this.#stopping.signal.aborted)
        this.#options.log.warn("the order was given up: another server may order the certificate");
    }
  }

  async #fail(error: unknown, signal: AbortSignal): Promise<void> {
    const { log, now } = this.#options;
    const reason = signal.aborted
      ? `the directory did not decide within ${ORDER_MS_MAX / MINUTE_MS} minutes`
      : reasonOf(error);
    const heldUntil = (error instanceof Refusal ? error.retryAt : null) ?? 0;
    await this.#save(failedState(this.#state, { at: now(), reason }, heldUntil, this.#certificate));
    reportFailure(log, this.#state, this.#certificate?.expiresAt ?? null);
  }

  async #decide(certificate: Certificate): Promise<void> {
    const before = renewalOf(this.#state, certificate);
    const { signal } = this.#stopping;
    const sources = { certificate, before, directory: this.#directory, signal };
    const renewal = await decideRenewal({ ...sources, log: this.#options.log });
    if (!signal.aborted) await this.#save({ ...this.#state, renewal });
  }

  /** In memory, too, if it cannot be written: the server goes on. */
  async #save(state: AcmeState): Promise<void> {
    this.#state = state;
    try {
      await this.#options.store.saveState(state);
    } catch (error) {
      this.#options.log.warn({ reason: messageOf(error) }, "the state of ACME cannot be saved");
    }
  }

  /** The id of the certificate in use, for a directory that knows it. */
  #replaces(): string | null {
    const { issuer, directory } = this.#state;
    const certificate = issuer === directory ? this.#certificate : null;
    // Directories without renewal information do not know the field.
    const isKnown = renewalOf(this.#state, certificate)?.window != null;
    return certificate !== null && isKnown ? certificateId(certificate) : null;
  }

  async #sleep(milliseconds: number): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    const options = { signal: woken.signal, ref: false };
    const pauseMs = Math.min(milliseconds, this.#options.store.lookEveryMs);
    await delay(pauseMs, null, options).catch(() => {});
  }
}
