/**
 * Counts failed sign-ins in the log, in at most one line per minute. The line contains nothing that was
 * typed, because a mistyped name may be a password.
 */
import type { Logger } from "pino";

const LINE_EVERY_MS = 60_000;
/** The line names the clients with the most failures. */
const CLIENTS_NAMED = 5;
/** Failures of further addresses are counted without an address. */
const CLIENTS_COUNTED_MAX = 10_000;

type FailureKind =
  | "unknown_address"
  | "wrong_password"
  | "refused_passkey"
  /** The right password or passkey of a member whose desk is archived. */
  | "archived_desk"
  /** Refused unseen, because there were too many attempts. */
  | "throttled";

export class FailedSignIns {
  readonly #log: Logger;
  readonly #everyMs: number;
  #kinds = new Map<FailureKind, number>();
  #clients = new Map<string, number>();
  #timer: Timer | undefined;

  constructor(log: Logger, everyMs: number = LINE_EVERY_MS) {
    this.#log = log;
    this.#everyMs = everyMs;
  }

  count(kind: FailureKind, client: string): void {
    this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) + 1);
    const failures = this.#clients.get(client) ?? 0;
    if (failures > 0 || this.#clients.size < CLIENTS_COUNTED_MAX) {
      this.#clients.set(client, failures + 1);
    }
    this.#timer ??= setTimeout(() => this.flush(), this.#everyMs).unref();
  }

  /** Writes the line of the present minute, if there is one. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#kinds.size === 0) return;
    const most = [...this.#clients]
      .toSorted(([, one], [, other]) => other - one)
      .slice(0, CLIENTS_NAMED);
    this.#log.warn(
      {
        ...Object.fromEntries(this.#kinds),
        clients: this.#clients.size,
        most_by_client: Object.fromEntries(most),
      },
      "failed sign-ins at the console in the last minute",
    );
    this.#kinds = new Map();
    this.#clients = new Map();
  }
}
