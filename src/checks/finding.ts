/** What a check is given, and what it finds. */
import type { ServeConfig } from "../serve/config.ts";
import type { StoredSignal } from "../domain/signal/stored-signal.ts";
import type { Awaitable } from "../domain/storage/awaitable.ts";
import type { DatabaseFiles } from "../domain/storage/files.ts";
import type { ServerStatus } from "../ops/server.ts";
import type { Stored } from "./stored.ts";

export type Severity = "ok" | "warning" | "problem";

export interface Finding {
  readonly severity: Severity;
  readonly sentence: string;
  /** What to do, or the command to type; null if the sentence says it, or there is nothing to do. */
  readonly next: string | null;
  /** Set: the check fails in `/readyz`. True: signals cannot be taken now, and it answers 503. */
  readonly stopsSignals?: boolean;
}

export interface Context {
  readonly dataDir: string;
  /** What only a database in the folder has; null for another one. */
  readonly files: DatabaseFiles | null;
  /** Null: not running, or it does not answer. */
  readonly server: ServerStatus | null;
  /** Epoch milliseconds. */
  readonly now: number;
  /** What `doctor` was given; null: only what the server says is known. */
  readonly config: ServeConfig | null;
  /** Reads everything, however long that takes. */
  readonly isDeep: boolean;
  /** A command with the program and the folder, as it is typed. */
  readonly toType: (command: string) => string;
  readonly explain: (error: unknown) => string;
  /** The newest signals of all desks; none without a database. */
  readonly newest: (limit: number) => Promise<readonly StoredSignal[]>;
  /** Throws `UserError`. */
  readonly stored: () => Promise<Stored>;
  /** Throws `UserError` with what `serve` would say. */
  readonly requireStart: () => Promise<void>;
}

/** Returns null if there is nothing to check. Throws `UserError` for a problem whose message says what to do. */
export type Check = (context: Context) => Awaitable<Finding | readonly Finding[] | null>;

/** A stopped server cannot be asked. */
export const SETTINGS_ADVICE =
  "give doctor the flags of serve, or the service's environment as in docs/runbook.md";

export function ok(sentence: string): Finding {
  return { severity: "ok", sentence, next: null };
}

export function warning(sentence: string, next: string | null = null): Finding {
  return { severity: "warning", sentence, next };
}

export function problem(sentence: string, next: string | null = null): Finding {
  return { severity: "problem", sentence, next };
}

/** A problem for which `/readyz` answers 503. */
export function stop(sentence: string, next: string): Finding {
  return { ...problem(sentence, next), stopsSignals: true };
}
