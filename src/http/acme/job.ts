/** Obtains the certificate of `--acme-domain` and renews it, for as long as the server runs. */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { messageOf } from "../../lib/errors.ts";
import { MINUTE_MS } from "../../lib/text/time.ts";
import { formatAddress } from "../address.ts";
import type { ChallengeServer } from "./challenges.ts";
import { Directory, reasonOf, Refusal } from "./directory.ts";
import { missingNames, orderTime, questionTime, renewalOf, type Situation } from "./due.ts";
import { orderCertificate } from "./order.ts";
import { type AcmePlan, readCa } from "./plan.ts";
import { decideRenewal } from "./renewal.ts";
import { orderInterval } from "./schedule.ts";
import {
  type AcmeState,
  askedOf,
  boundWaits,
  failedState,
  initialState,
  resumeState,
} from "./state.ts";
import {
  AcmeStore,
  findUsable,
  isValid,
  readCertificate,
  reportAccountKey,
  type StoredCertificate,
} from "./store.ts";
import { type AcmeStatus, reportFailure, reportStart } from "./status.ts";

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
  readonly #store: AcmeStore;
  readonly #directory: Directory;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;
  readonly #first = Promise.withResolvers<void>();
  #state: AcmeState;
  #certificate: StoredCertificate | null;
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
    this.#directory = new Directory(plan.directory, ca, now);
    this.#store = new AcmeStore(dataDir);
    this.#certificate = findUsable(dataDir, log);
    const state = resumeState(this.#store.readState(), askedOf(plan, ca));
    this.#state = boundWaits(state, now());
    reportStart(log, this.status, now());
    reportAccountKey(dataDir, log);
    if (isValid(this.#certificate, now())) this.#tryToListen();
    else challenges.listen(now());
    if (this.#certificate !== null) this.#first.resolve();
    this.#ended = this.#run();
  }

  get status(): AcmeStatus {
    const { plan, now, challenges } = this.#options;
    const { domains, directory } = plan;
    const { failure, held_until: heldUntil } = this.#state;
    const next = orderTime(this.#situation);
    return {
      domains,
      missing: missingNames(this.#certificate, domains),
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

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#rewrite();
      const now = this.#options.now();
      this.#state = boundWaits(this.#state, now);
      const certificate = this.#certificate;
      const [orderAt, askAt] = [orderTime(this.#situation), questionTime(this.#situation)];
      if (now >= orderAt) await this.#order();
      else if (certificate !== null && now >= askAt) await this.#decide(certificate);
      else await this.#sleep(Math.min(orderAt, askAt) - now);
    }
  }

  /** Between orders, so that it never replaces a new certificate. */
  async #rewrite(): Promise<void> {
    if (this.#damaged === null) return;
    const { text, reason } = this.#damaged;
    const { log } = this.#options;
    this.#damaged = null;
    try {
      await this.#store.rewriteCertificate(text);
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

  get #situation(): Situation {
    return { plan: this.#options.plan, state: this.#state, certificate: this.#certificate };
  }

  async #order(): Promise<void> {
    const { plan, log, now, challenges, onIssued } = this.#options;
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(ORDER_MS_MAX)]);
    try {
      // On a full disk, nothing is ordered that could not be kept.
      await this.#store.saveState(this.#state);
      challenges.listen(now());
      const issued = await orderCertificate({
        plan,
        directory: this.#directory,
        accountKey: await this.#store.accountKey(),
        replaces: this.#replaces(),
        offer: (token, answer) => challenges.offer(token, answer),
        signal,
      });
      await this.#store.saveCertificate(issued);
      this.#damaged = null;
      this.#certificate = readCertificate(this.#options.dataDir);
      const retry_at = now() + orderInterval(this.#certificate?.lifetimeMs ?? 0);
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
    const lifetimeMs = this.#certificate?.lifetimeMs ?? null;
    const failed = failedState(this.#state, { at: now(), reason }, heldUntil, lifetimeMs);
    await this.#save(failed);
    reportFailure(log, failed, this.#certificate?.validity.to ?? null);
  }

  async #decide(certificate: StoredCertificate): Promise<void> {
    const { log, now } = this.#options;
    const { signal } = this.#stopping;
    const before = renewalOf(this.#state, certificate);
    const sources = { certificate, before, directory: this.#directory, signal, log, now };
    const renewal = await decideRenewal(sources);
    if (!signal.aborted) await this.#save({ ...this.#state, renewal });
  }

  /** In memory, too, if it cannot be written: the server goes on. */
  async #save(state: AcmeState): Promise<void> {
    this.#state = state;
    try {
      await this.#store.saveState(state);
    } catch (error) {
      this.#options.log.warn({ reason: messageOf(error) }, "the state of ACME cannot be saved");
    }
  }

  #replaces(): string | null {
    const { issuer, directory } = this.#state;
    // Directories without renewal information do not know the field.
    const renewal = issuer === directory ? renewalOf(this.#state, this.#certificate) : null;
    return renewal?.window == null ? null : renewal.id;
  }

  async #sleep(milliseconds: number): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    const options = { signal: woken.signal, ref: false };
    await delay(Math.min(milliseconds, SLEEP_MS_MAX), null, options).catch(() => {});
  }
}
