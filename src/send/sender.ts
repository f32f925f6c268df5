/** Sends signals over HTTP, with the retries that `docs/api.md` asks for. */
import { setTimeout } from "node:timers/promises";
import { UserError } from "../domain/errors.ts";
import { escapeControls } from "../domain/shell.ts";
import type { Bytes } from "./input.ts";

export interface Target {
  /** Without `/v1/signals`. */
  readonly url: string;
  readonly key: string;
  /** PEM text of certificates to trust; null: those of the system. */
  readonly ca: string | null;
  /** For one attempt. */
  readonly timeoutMs: number;
  /** For all attempts to send one signal. */
  readonly giveUpAfterMs: number;
}

export type Outcome =
  | {
      readonly kind: "stored" | "duplicate";
      readonly answer: string;
      /** The fields in which a duplicate differs from the stored signal, or null. */
      readonly differs: string | null;
    }
  | { readonly kind: "refused"; readonly status: number; readonly answer: string }
  | {
      /** `unknown` if an attempt may have stored the signal. */
      readonly kind: "unknown" | "not sent";
      readonly reason: string;
      /** Why other signals need not be tried either, or null. */
      readonly stops: UserError | null;
    };

/** The key, the address or the certificate is wrong, so that the same command would fail again. */
export class TargetError extends UserError {}

/** An attempt that did not tell what became of the signal. */
interface Failure {
  readonly reason: string;
  readonly mayBeStored: boolean;
  readonly retryAfterMs: number;
  /** Why no retry can help, or null. */
  readonly stops: UserError | null;
}

const BACKOFF_FIRST_MS = 200;
const BACKOFF_MAX_MS = 30_000;
/** The signal is at fault, and only this one. */
const REFUSED = new Set([400, 413, 422]);
const ANSWER_CHARACTERS_SHOWN = 200;

export class Sender {
  readonly #target: Target;
  readonly #endpoint: string;
  readonly #headers: Record<string, string>;
  readonly #onRetry: (reason: string) => void;
  /** When the server last answered for any signal. */
  #lastAnswerAt = -Infinity;

  constructor(target: Target, onRetry: (reason: string) => void) {
    this.#target = target;
    this.#endpoint = `${target.url}/v1/signals`;
    this.#headers = {
      Authorization: `Bearer ${target.key}`,
      "Content-Type": "application/json",
    };
    this.#onRetry = onRetry;
    // A proxy of the environment would get the key unencrypted.
    if (target.url.startsWith("http:")) process.env["NO_PROXY"] = process.env["no_proxy"] = "*";
  }

  /** Tries until there is an outcome, for as long as the target says. `stop` ends the waiting, not an attempt. */
  async send(body: Bytes, stop: AbortSignal): Promise<Outcome> {
    const startedAt = performance.now();
    let mayBeStored = false;
    for (let attempt = 1; ; attempt += 1) {
      const result = await this.#attempt(body);
      if ("kind" in result) {
        this.#lastAnswerAt = performance.now();
        return result;
      }
      const { reason } = result;
      mayBeStored ||= result.mayBeStored;
      if (result.stops !== null) return unsent(mayBeStored, reason, result.stops);
      const leftMs = startedAt + this.#target.giveUpAfterMs - performance.now();
      if (leftMs <= 0) {
        const isDown = this.#lastAnswerAt < startedAt;
        return unsent(mayBeStored, reason, isDown ? this.#down(reason) : null);
      }
      if (stop.aborted) return unsent(mayBeStored, reason, null);
      this.#onRetry(reason);
      const jitterMs = Math.random() * Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** attempt);
      // The last attempt is at the end of the time.
      const waitMs = Math.min(Math.max(jitterMs, result.retryAfterMs), leftMs);
      // Rejects if the signal is aborted.
      await setTimeout(waitMs, undefined, { signal: stop }).catch(() => {});
      if (stop.aborted) return unsent(mayBeStored, reason, null);
    }
  }

  #down(reason: string): UserError {
    return new UserError(
      `Gave up on ${this.#endpoint}: ${sentence(reason)} Check that the server runs, or give its address with --url URL.`,
    );
  }

  async #attempt(body: Bytes): Promise<Outcome | Failure> {
    let response: Response;
    let text: string;
    try {
      response = await fetch(this.#endpoint, {
        method: "POST",
        headers: this.#headers,
        body,
        redirect: "manual",
        signal: AbortSignal.timeout(this.#target.timeoutMs),
        tls: {
          rejectUnauthorized: true,
          ...(this.#target.ca === null ? {} : { ca: this.#target.ca }),
        },
      });
      text = await response.text();
    } catch (error) {
      return this.#explain(error as NodeJS.ErrnoException);
    }
    const { status } = response;
    if (status === 200 || status === 201)
      return this.#accepted(text, response.headers.get("X-Duplicate-Differs"));
    if (REFUSED.has(status)) return { kind: "refused", status, answer: text };
    if (status === 429 || status >= 500) {
      return {
        reason: `${status} ${shown(text)}`,
        mayBeStored: status !== 429,
        retryAfterMs: retryAfterMs(response.headers.get("Retry-After") ?? ""),
        stops: null,
      };
    }
    if (status === 401) {
      return hopeless(
        `${this.#endpoint} refused the key (401): ${sentence(shown(text))} Name the file of a valid key of the same desk with --key-file FILE, or set SIGNALBOX_KEY.`,
      );
    }
    return hopeless(
      `${this.#endpoint} answered ${status}: ${sentence(shown(text))} Give the server's address with --url URL.`,
    );
  }

  #accepted(text: string, differs: string | null): Outcome | Failure {
    const { id, deduped } = parseObject(text);
    if (typeof id === "string" && typeof deduped === "boolean") {
      return { kind: deduped ? "duplicate" : "stored", answer: text, differs };
    }
    return hopeless(
      `The answer of ${this.#endpoint} did not come from signalbox: give the server's address with --url URL.`,
      true,
    );
  }

  #explain({ code = "", name, message }: NodeJS.ErrnoException): Failure {
    const where = this.#endpoint;
    if (/CERT|SIGNATURE|ISSUER/.test(code)) {
      return hopeless(
        `The certificate of ${where} is not trusted (${code}): check the host name, or name the certificate to trust with --ca FILE.`,
      );
    }
    if (/EPROTO|WRONG_VERSION|PACKET_LENGTH|RECORD_LAYER/.test(code)) {
      return hopeless(`${where} does not speak TLS (${code}): is its address http or https?`);
    }
    if (code === "ENOTFOUND") {
      return hopeless(
        `There is no host ${new URL(where).hostname}: give the server's address with --url URL, such as https://signals.example.com.`,
      );
    }
    const reason = name === "TimeoutError" ? "no answer in time" : reasons[code];
    return {
      reason: reason ?? `${code} ${message}`,
      mayBeStored: code !== "ECONNREFUSED",
      retryAfterMs: 0,
      stops: null,
    };
  }
}

const reasons: Record<string, string> = {
  ECONNREFUSED: "no server listens there (ECONNREFUSED)",
  ECONNRESET: "the connection broke (ECONNRESET)",
};

function hopeless(message: string, mayBeStored = false): Failure {
  return { reason: message, mayBeStored, retryAfterMs: 0, stops: new TargetError(message) };
}

function unsent(mayBeStored: boolean, reason: string, stops: UserError | null): Outcome {
  return { kind: mayBeStored ? "unknown" : "not sent", reason, stops };
}

/** An answer's message may end with a full stop already. */
export function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

/** The message of an error answer, or the beginning of any other. */
function shown(text: string): string {
  const { message } = parseObject(text);
  const all = (typeof message === "string" ? message : text).trim();
  return escapeControls(all.slice(0, ANSWER_CHARACTERS_SHOWN));
}

/** Returns an empty object for anything but a JSON object. */
export function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" ? { ...value } : {};
  } catch {
    return {};
  }
}

/** In seconds or, from some proxies, as a date. */
function retryAfterMs(text: string): number {
  return Number(text) * 1_000 || Date.parse(text) - Date.now() || 0;
}
