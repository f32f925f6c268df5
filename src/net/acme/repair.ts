/** What is done about files in `<data>/acme/` that cannot be used. */
import type { Logger } from "pino";
import { messageOf } from "../../domain/errors.ts";
import {
  type AcmeStore,
  checkAccountKey,
  readCertificate,
  type StoredCertificate,
} from "./store.ts";

/** Returns null without a certificate, and for one that cannot be used. */
export function findUsable(dataDir: string, log: Logger): StoredCertificate | null {
  try {
    return readCertificate(dataDir);
  } catch (error) {
    log.warn(
      { reason: messageOf(error) },
      "the stored certificate cannot be used: another one is ordered",
    );
    return null;
  }
}

/** Otherwise it would be found with the next renewal. */
export function reportAccountKey(dataDir: string, log: Logger): void {
  try {
    checkAccountKey(dataDir);
  } catch (error) {
    log.error({ reason: messageOf(error) }, "no certificate can be ordered with the account's key");
  }
}

/** Writes the file of the certificate in use again. */
export class Repair {
  readonly #store: AcmeStore;
  readonly #log: Logger;
  #asked: { readonly text: string; readonly reason: string } | null = null;
  /** Why it could not be written, as it was logged last. */
  #failure = "";

  constructor(store: AcmeStore, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  /** `text`: of the file. `reason`: why it cannot be used. */
  ask(text: string, reason: string): void {
    this.#asked = { text, reason };
  }

  /** There is a new certificate. */
  forget(): void {
    this.#asked = null;
  }

  /** Call it between orders, so that it never replaces a new certificate. */
  async run(): Promise<void> {
    if (this.#asked === null) return;
    const { text, reason } = this.#asked;
    this.#asked = null;
    try {
      await this.#store.rewriteCertificate(text);
      this.#failure = "";
      this.#log.warn({ reason }, "the stored certificate could not be used: it was written again");
    } catch (error) {
      const failure = messageOf(error);
      if (failure === this.#failure) return;
      this.#failure = failure;
      this.#log.error(
        { reason, failure },
        "the stored certificate cannot be used, nor written again: do not restart the server before it can; the one in memory stays in use",
      );
    }
  }
}
