/** Obtains the certificate of `--acme-domain` and renews it, for as long as the server runs. */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { messageOf } from "../../domain/errors.ts";
import { MINUTE_MS } from "../../domain/time.ts";
import { formatAddress } from "../address.ts";
import { ChallengeServer } from "./challenges.ts";
import { Directory, Refusal } from "./directory.ts";
import { orderCertificate } from "./order.ts";
import { type AcmePlan, readCa } from "./plan.ts";
import { decideRenewal } from "./renewal.ts";
import { certificateId } from "./renewal-info.ts";
import { orderInterval, type Random, retryDelay } from "./schedule.ts";
import {
  type AcmeState,
  AcmeStore,
  initialState,
  type Renewal,
  type StoredCertificate,
} from "./state.ts";

/** For the log, `/status` and metrics. Times are epoch milliseconds. */
export interface AcmeStatus {
  readonly domains: readonly string[];
  readonly directory: string;
  /** Where challenges are answered, as bound. */
  readonly http_listen: string;
  /** When the next order is due; null: not decided yet. */
  readonly next_attempt_at: number | null;
  /** Why the last order failed; null if it succeeded, or there was none. */
  readonly failure: { readonly at: number; readonly reason: string } | null;
}

/** An order takes seconds; the directory may let a client wait for its decision. */
const ORDER_MS_MAX = 5 * MINUTE_MS;
const REASON_LENGTH_MAX = 500;
/** The clock is read again so often: it may have been set, or the machine may have slept. */
const SLEEP_MS_MAX = MINUTE_MS;

interface AcmeOptions {
  readonly plan: AcmePlan;
  readonly dataDir: string;
  readonly log: Logger;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly random?: Random;
}

export class AcmeJob {
  readonly challenges: ChallengeServer;
  readonly #options: AcmeOptions;
  readonly #random: Random;
  readonly #store: AcmeStore;
  readonly #directory: Directory;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;
  readonly #first = Promise.withResolvers<void>();
  #state: AcmeState;
  #certificate: StoredCertificate | null;
  #onRenewed: () => void = () => {};
  #wake: () => void = () => {};

  /** Call it with the folder's lock held. Throws `UserError`: for `--acme-ca`, and for the address. */
  constructor(options: AcmeOptions) {
    const { plan, dataDir, now } = options;
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#directory = new Directory({ url: plan.directory, ca: readCa(plan), now });
    this.#store = new AcmeStore(dataDir);
    this.#certificate = this.#readCertificate();
    const kept = this.#store.readState(now());
    this.#state =
      kept?.directory === plan.directory
        ? kept
        : initialState(plan.directory, kept?.issuer ?? null);
    this.challenges = new ChallengeServer(plan.httpListen);
    if (this.#certificate !== null) this.#first.resolve();
    this.#ended = this.#run();
  }

  get status(): AcmeStatus {
    const { domains, directory } = this.#options.plan;
    return {
      domains,
      directory,
      http_listen: formatAddress(this.challenges.address),
      next_attempt_at: Number.isFinite(this.#orderAt()) ? this.#orderAt() : null,
      failure: this.#state.failure,
    };
  }

  /** Resolves when there is a certificate, which may have expired. Throws when `signal` is aborted. */
  async waitForCertificate(signal: AbortSignal): Promise<void> {
    if (this.#certificate !== null) return;
    const { domains, directory, http_listen } = this.status;
    this.#options.log.info(
      { domains, directory, http_listen },
      "no certificate yet: no signals are taken until the directory issues one, which asks each name on port 80",
    );
    signal.throwIfAborted();
    await Promise.race([this.#first.promise, once(signal, "abort")]);
    signal.throwIfAborted();
  }

  /** Calls `onRenewed` after each new certificate from now on. */
  start(onRenewed: () => void): void {
    this.#onRenewed = onRenewed;
  }

  /** Ends the wait after a failure, unless the directory asked for it. */
  retry(): void {
    if (this.#state.failure === null) return;
    this.#state = { ...this.#state, retry_at: this.#state.held_until };
    this.#wake();
  }

  /** Aborts an order. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    await this.#ended;
    await this.challenges.stop();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const now = this.#options.now();
      const certificate = this.#certificate;
      if (now >= this.#orderAt()) await this.#order();
      else if (certificate !== null && now >= this.#askAt()) await this.#decide(certificate);
      else await this.#sleep(Math.min(this.#orderAt(), this.#askAt()) - now);
    }
  }

  #orderAt(): number {
    const { retry_at, failure } = this.#state;
    if (this.#certificate === null || !this.#isWanted(this.#certificate)) {
      // Another order that succeeded does not delay this one.
      return failure === null ? 0 : retry_at;
    }
    // Its time is decided next, without the directory if that does not answer.
    return Math.max(retry_at, this.#renewal()?.at ?? Infinity);
  }

  #askAt(): number {
    if (this.#certificate === null) return Infinity;
    const renewal = this.#renewal();
    return renewal === null ? 0 : (renewal.ask_at ?? Infinity);
  }

  /** What was decided about the certificate in use. */
  #renewal(): Renewal | null {
    const { renewal } = this.#state;
    return renewal?.certificate === this.#certificate?.fingerprint ? renewal : null;
  }

  /** Whether it is of this directory and for all names. */
  #isWanted({ leaf }: StoredCertificate): boolean {
    const { domains, directory } = this.#options.plan;
    const { issuer } = this.#state;
    if (issuer !== null && issuer !== directory) return false;
    return domains.every((name) => leaf.checkHost(name) !== undefined);
  }

  async #order(): Promise<void> {
    const { plan, log, now } = this.#options;
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(ORDER_MS_MAX)]);
    try {
      // On a full disk, nothing is ordered that could not be kept.
      this.#store.saveState(this.#state);
      const issued = await orderCertificate({
        plan,
        directory: this.#directory,
        accountKey: this.#store.accountKey(),
        replaces: this.#replaces(),
        offer: (token, answer) => this.challenges.offer(token, answer),
        signal,
      });
      this.#store.saveCertificate(issued);
      this.#certificate = this.#store.readCertificate();
      const fresh = initialState(plan.directory, plan.directory);
      this.#save({ ...fresh, retry_at: now() + orderInterval(this.#lifetimeMs() ?? 0) });
      log.info({ domains: plan.domains, directory: plan.directory }, "certificate issued");
      this.#first.resolve();
      this.#onRenewed();
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#fail(error, signal);
    }
  }

  #fail(error: unknown, signal: AbortSignal): void {
    const { log, now } = this.#options;
    const at = now();
    const reason = signal.aborted
      ? `the directory did not decide within ${ORDER_MS_MAX / MINUTE_MS} minutes`
      : messageOf(error).slice(0, REASON_LENGTH_MAX);
    const failures = this.#state.failures + 1;
    const heldUntil = (error instanceof Refusal ? error.retryAt : null) ?? 0;
    const backoff = at + retryDelay(failures, this.#lifetimeMs(), this.#random);
    const retryAt = Math.round(Math.max(backoff, heldUntil));
    this.#save({
      ...this.#state,
      failures,
      failure: { at, reason },
      retry_at: retryAt,
      held_until: heldUntil,
    });
    const said = { reason, failures, next_attempt: new Date(retryAt).toISOString() };
    if (this.#certificate === null) log.error(said, "no certificate could be obtained");
    else log.error(said, "the certificate could not be renewed; the current one stays in use");
  }

  async #decide(certificate: StoredCertificate): Promise<void> {
    const { log, now } = this.#options;
    const { signal } = this.#stopping;
    const [before, directory, random] = [this.#renewal(), this.#directory, this.#random];
    const sources = { certificate, before, directory, signal, log, now, random };
    const renewal = await decideRenewal(sources);
    if (!signal.aborted) this.#save({ ...this.#state, renewal });
  }

  /** In memory, too, if it cannot be written: the server goes on. */
  #save(state: AcmeState): void {
    this.#state = state;
    try {
      this.#store.saveState(state);
    } catch (error) {
      this.#options.log.warn({ reason: messageOf(error) }, "the state of ACME cannot be saved");
    }
  }

  #replaces(): string | null {
    const { issuer, directory } = this.#state;
    // Directories without renewal information do not know the field.
    const isKnown = issuer === directory && this.#renewal()?.window != null;
    return isKnown && this.#certificate !== null ? certificateId(this.#certificate.pem) : null;
  }

  #lifetimeMs(): number | null {
    if (this.#certificate === null) return null;
    const { from, to } = this.#certificate.validity;
    return to - from;
  }

  #readCertificate(): StoredCertificate | null {
    try {
      return this.#store.readCertificate();
    } catch (error) {
      this.#options.log.warn(
        { reason: messageOf(error) },
        "the stored certificate cannot be used: another one is ordered",
      );
      return null;
    }
  }

  async #sleep(milliseconds: number): Promise<void> {
    const { promise: woken, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const over = new AbortController();
    const { signal } = over;
    const timer = delay(Math.min(milliseconds, SLEEP_MS_MAX), null, { signal, ref: false });
    await Promise.race([woken, timer.catch(() => {})]);
    over.abort();
  }
}
