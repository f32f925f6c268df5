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
import { type AcmeStatus, reportFailure, reportStart } from "./report.ts";
import {
  type AcmeState,
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
/** The clock is read again so often: it may have been set, or the machine may have slept. */
const SLEEP_MS_MAX = MINUTE_MS;

interface AcmeOptions {
  readonly plan: AcmePlan;
  readonly dataDir: string;
  readonly log: Logger;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly challenges: ChallengeServer;
  /** The folder has another certificate. */
  readonly onIssued: () => void;
}

export class AcmeJob {
  readonly #options: AcmeOptions;
  readonly #directory: Directory;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;
  readonly #first = Promise.withResolvers<void>();
  #state: AcmeState;
  #certificate: Certificate | null;
  #wake: () => void = () => {};
  /** The text of a file that cannot be used, and why; null: the file is as it should be. */
  #damaged: { readonly text: string; readonly reason: string } | null = null;
  /** Why that file could not be written again, as it was logged last. */
  #rewriteFailure = "";

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
    const state = resumeState(files.readState(dataDir), askedOf(plan, ca));
    this.#state = boundWaits(state, now());
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
    this.#damaged = { text, reason };
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
      await this.#rewrite();
      const now = this.#options.now();
      this.#state = boundWaits(this.#state, now);
      const certificate = this.#certificate;
      const [orderAt, askAt] = [this.#orderTime, questionTime(this.#state, certificate)];
      if (now >= orderAt) await this.#order();
      else if (certificate !== null && now >= askAt) await this.#decide(certificate);
      else await this.#sleep(Math.min(orderAt, askAt) - now);
    }
  }

  /** Between orders, so that it never replaces a new certificate. */
  async #rewrite(): Promise<void> {
    if (this.#damaged === null) return;
    const { text, reason } = this.#damaged;
    const { dataDir, log } = this.#options;
    this.#damaged = null;
    try {
      await files.saveCertificate(dataDir, text);
      this.#rewriteFailure = "";
      log.warn({ reason }, "the stored certificate could not be used: it was written again");
    } catch (error) {
      const failure = messageOf(error);
      if (failure === this.#rewriteFailure) return;
      this.#rewriteFailure = failure;
      log.error(
        { reason, failure },
        "the stored certificate cannot be used, nor written again: do not restart the server before it can; the one in memory stays in use",
      );
    }
  }

  async #order(): Promise<void> {
    const { plan, dataDir, log, now, challenges, onIssued } = this.#options;
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(ORDER_MS_MAX)]);
    try {
      // On a full disk, nothing is ordered that could not be kept.
      await files.saveState(dataDir, this.#state);
      challenges.listen(now());
      const issued = await orderCertificate({
        plan,
        directory: this.#directory,
        accountKey: await files.accountKey(dataDir),
        replaces: this.#replaces(),
        offer: (token, answer) => challenges.offer(token, answer),
        signal,
      });
      await files.saveCertificate(dataDir, issued);
      this.#damaged = null;
      this.#certificate = loadCertificate(files.acmeFiles(dataDir));
      const retry_at = now() + orderInterval(this.#certificate);
      await this.#save({ ...initialState(this.#state, plan.directory), retry_at });
      log.info({ domains: plan.domains, directory: plan.directory }, "certificate issued");
      this.#first.resolve();
      onIssued();
    } catch (error) {
      if (!this.#stopping.signal.aborted) await this.#fail(error, signal);
    }
  }

  async #fail(error: unknown, signal: AbortSignal): Promise<void> {
    const { log, now } = this.#options;
    const reason = signal.aborted
      ? `the directory did not decide within ${ORDER_MS_MAX / MINUTE_MS} minutes`
      : reasonOf(error);
    const heldUntil = (error instanceof Refusal ? error.retryAt : null) ?? 0;
    const failure = { at: now(), reason };
    await this.#save(failedState(this.#state, failure, heldUntil, this.#certificate));
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
      await files.saveState(this.#options.dataDir, state);
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
    await delay(Math.min(milliseconds, SLEEP_MS_MAX), null, options).catch(() => {});
  }
}
