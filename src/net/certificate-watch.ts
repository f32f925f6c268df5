/** Reloads the certificate when its files change, or on request. */
import type { Logger } from "pino";
import { messageOf } from "../domain/errors.ts";
import { type Certificate, type CertificateFiles, loadCertificate } from "./tls.ts";

const POLL_MS = 5_000;

export class CertificateWatch {
  readonly #files: CertificateFiles;
  readonly #log: Logger;
  #replace: (next: Certificate) => void = () => {};
  #timer: Timer | undefined;
  #current: Certificate;
  /** The reason that was logged last. */
  #refusal = "";

  /** Throws {@link UserError} if the files cannot be used. */
  constructor(files: CertificateFiles, log: Logger) {
    this.#files = files;
    this.#log = log;
    this.#current = loadCertificate(files);
  }

  get current(): Certificate {
    return this.#current;
  }

  /** Calls `replace` with each new certificate from now on. */
  start(replace: (next: Certificate) => void): void {
    this.#replace = replace;
    // Polling also sees renames, symbolic links and network disks.
    this.#timer = setInterval(() => this.reload(), POLL_MS).unref();
  }

  /** Keeps the current certificate while the files are unusable: they may be halfway through a change. */
  reload(): void {
    try {
      const next = loadCertificate(this.#files);
      this.#refusal = "";
      if (next.cert === this.#current.cert && next.key === this.#current.key) return;
      this.#replace(next);
      this.#current = next;
      this.#log.info({ expires: new Date(next.expiresAt).toISOString() }, "new certificate in use");
    } catch (error) {
      const reason = messageOf(error);
      if (reason === this.#refusal) return;
      this.#refusal = reason;
      this.#log.warn({ reason }, "new certificate rejected; the previous one stays in use");
    }
  }

  /** Later reloads change no listener. */
  stop(): void {
    clearInterval(this.#timer);
    this.#replace = () => {};
  }
}
