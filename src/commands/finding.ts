/** What a check of `signalbox doctor` is given, and what it finds. */
import type { ServeConfig } from "../config.ts";
import type { Awaitable } from "../domain/storage.ts";
import type { Checks } from "../ops/health.ts";
import type { ServerStatus } from "../ops/server.ts";
import type { Attention } from "./attention.ts";

export type Severity = "ok" | "warning" | "problem";

export interface Finding {
  readonly severity: Severity;
  readonly sentence: string;
  /** What to do, or the command to type; null if the sentence says it, or there is nothing to do. */
  readonly next: string | null;
}

export interface Facts {
  /** The data folder as it was named. */
  readonly data: string;
  readonly config: ServeConfig;
  /** Null: not running. */
  readonly server: ServerStatus | null;
  readonly health: Checks | null;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** A stopped server cannot be asked. */
export const SETTINGS_ADVICE =
  "give doctor the flags of serve, or the service's environment as in docs/runbook.md";

/** Throws `UserError` for a problem whose message says what to do. */
export type Check = (facts: Facts) => Awaitable<Finding>;

export function ok(sentence: string): Finding {
  return { severity: "ok", sentence, next: null };
}

export function warning(sentence: string, next: string): Finding {
  return { severity: "warning", sentence, next };
}

export function problem(sentence: string, next: string | null = null): Finding {
  return { severity: "problem", sentence, next };
}

/** The first thing that needs attention, or else `sound`. */
export function judge([first]: readonly Attention[], severity: Severity, sound: string): Finding {
  return first === undefined ? ok(sound) : { severity, sentence: first.problem, next: first.next };
}
