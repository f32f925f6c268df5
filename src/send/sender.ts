/** What `send` makes of the answers. The client for bots sends, and retries as `docs/api.md` asks for. */
import { type Failure, Signalbox } from "../../clients/typescript/signalbox.ts";
import { UserError } from "../lib/errors.ts";
import { showHidden } from "../lib/text/hidden.ts";
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
      /** The fields in which a duplicate differs from the stored signal. */
      readonly differs: readonly string[];
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

/** The signal is at fault, and only this one. */
const REFUSED = new Set<number | null>([400, 409, 413, 422]);
const ANSWER_CHARACTERS_SHOWN = 200;

export class Sender {
  readonly #endpoint: string;
  readonly #signalbox: Signalbox;
  readonly #stop: AbortSignal;
  /** When the server last answered for any signal. */
  #lastAnswerAt = -Infinity;

  /** `stop` ends the retries, not an attempt. `onRetry` gets a few words. Throws {@link UserError}. */
  constructor({ ca, ...target }: Target, stop: AbortSignal, onRetry: (reason: string) => void) {
    this.#endpoint = `${target.url}/v1/signals`;
    this.#stop = stop;
    const tls = { rejectUnauthorized: true, ...(ca === null ? {} : { ca }) };
    try {
      this.#signalbox = new Signalbox({
        ...target,
        attempts: Infinity,
        signal: stop,
        onRetry: (_, failure) => onRetry(reasonOf(failure)),
        fetch: (url, request) => fetch(url, { ...request, tls }),
      });
    } catch (error) {
      throw error instanceof TypeError ? new UserError(error.message) : error;
    }
  }

  /** Tries until there is an outcome, for as long as the target says. */
  async send(body: Bytes): Promise<Outcome> {
    const startedAt = performance.now();
    const result = await this.#signalbox.post(body);
    const isRefused = "status" in result && !result.canRetry && REFUSED.has(result.status);
    if ("id" in result || isRefused) this.#lastAnswerAt = performance.now();
    if ("id" in result) {
      const { differs, ...stored } = result;
      const kind = stored.deduped ? "duplicate" : "stored";
      return { kind, answer: JSON.stringify(stored), differs };
    }
    const { status, answer, canRetry, mayBeStored } = result;
    if (isRefused) return { kind: "refused", status: Number(status), answer };
    const kind = mayBeStored ? "unknown" : "not sent";
    if (!canRetry) {
      const stops = new TargetError(this.#whatToChange(result));
      return { kind, reason: stops.message, stops };
    }
    const reason = reasonOf(result);
    const isDown = !this.#stop.aborted && this.#lastAnswerAt < startedAt;
    return { kind, reason, stops: isDown ? this.#down(reason) : null };
  }

  #down(reason: string): UserError {
    return new UserError(
      `Gave up on ${this.#endpoint}: ${sentence(reason)} Check that the server runs, or give its address with --url URL.`,
    );
  }

  #whatToChange({ status, code, answer }: Failure): string {
    const where = this.#endpoint;
    if (status === 401) {
      return `${where} refused the key (401): ${sentence(shown(answer))} Name the file of a valid key of the same desk with --key-file FILE, or set SIGNALBOX_KEY.`;
    }
    if (status !== null) {
      return `${where} answered ${status}: ${sentence(shown(answer))} Give the server's address with --url URL.`;
    }
    return code === "EPROTO"
      ? `${where} does not speak TLS (${code}): is its address http or https?`
      : `The certificate of ${where} is not trusted (${code}): check the host name, or name the certificate to trust with --ca FILE.`;
  }
}

const reasons: Record<string, string> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection broken",
  EPROTO: "connection broken inside TLS",
  ENOTFOUND: "no such host",
  TimeoutError: "no answer in time",
};

function reasonOf({ status, code, answer }: Failure): string {
  if (status === null) return reasons[code] ?? code;
  return status < 400 ? `${status} from another program` : `${status} ${shown(answer)}`.trim();
}

/** An answer's message may end with a full stop already. */
export function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

/** The message of an error answer, or the beginning of any other. */
function shown(text: string): string {
  const { message } = parseObject(text);
  const all = (typeof message === "string" ? message : text).trim();
  return showHidden(all.slice(0, ANSWER_CHARACTERS_SHOWN));
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
