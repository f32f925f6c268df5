/** Writes the file of the certificate in use again, if something has damaged it. */
import type { Logger } from "pino";
import { messageOf } from "../../lib/errors.ts";
import { saveCertificate } from "./files.ts";

export class CertificateRepair {
  readonly #dataDir: string;
  readonly #log: Logger;
  /** The text of a file that cannot be used, and why; null: the file is as it should be. */
  #damaged: { readonly text: string; readonly reason: string } | null = null;
  /** Why that file could not be written again, as it was logged last. */
  #failure = "";

  constructor(dataDir: string, log: Logger) {
    this.#dataDir = dataDir;
    this.#log = log;
  }

  plan(text: string, reason: string): void {
    this.#damaged = { text, reason };
  }

  /** The file has another certificate. */
  forget(): void {
    this.#damaged = null;
  }

  async run(): Promise<void> {
    if (this.#damaged === null) return;
    const { text, reason } = this.#damaged;
    this.#damaged = null;
    try {
      await saveCertificate(this.#dataDir, text);
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
