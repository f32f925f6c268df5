/** Restore drills: at an interval, the newest backup is restored where nothing uses it, verified and compared. */
import { constants } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Logger } from "pino";
import { messageOf, StoppedError, UserError } from "../lib/errors.ts";
import { DAY_MS } from "../lib/text/time.ts";
import type { MadeBackup } from "./folder.ts";

/** In the folder of the backups, so that a restart does not begin a new interval. */
const RECORD = "signalbox-drill.json";
const RECORD_BYTES_MAX = 64 * 1024;
/** Others may be able to put a link into the folder. */
const REPLACE = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;

const Stored = Type.Object({
  /** Epoch milliseconds. */
  last: Type.Object({
    at: Type.Integer(),
    file: Type.String(),
    /** Null: it passed. */
    failure: Type.Union([Type.String(), Type.Null()]),
    is_skipped: Type.Boolean(),
  }),
  /** When the last one passed; null: none has. */
  passed_at: Type.Union([Type.Integer(), Type.Null()]),
});

type Known = Static<typeof Stored> | { readonly last: null; readonly passed_at: null };
export type DrillStatus = Known & { readonly every_ms: number };

/** Restores, verifies and compares a backup in a process of its own; its result goes to the log. */
export type RunDrill = (file: string, signal: AbortSignal) => Promise<object>;

/** There is no room for a drill. */
export class DrillSkipped extends UserError {}

const NONE: Known = { last: null, passed_at: null };

/** What the last server has written; nothing if it cannot be read. */
export async function readDrills(dir: string): Promise<Known> {
  try {
    const file = Bun.file(join(dir, RECORD)).slice(0, RECORD_BYTES_MAX);
    const record: unknown = await file.json();
    return Value.Check(Stored, record) ? record : NONE;
  } catch {
    return NONE;
  }
}

export interface DrillPlan {
  readonly dir: string;
  readonly everyMs: number;
  readonly run: RunDrill;
  readonly log: Logger;
  readonly stopping: AbortSignal;
  readonly onStatus: (status: DrillStatus) => void;
}

export class DrillJob {
  readonly #plan: DrillPlan;
  #known = NONE;
  #newest: MadeBackup | null = null;
  #timer: Timer | undefined;
  #running: Promise<void> | null = null;

  constructor(plan: DrillPlan) {
    this.#plan = plan;
  }

  async open(): Promise<void> {
    this.#note(await readDrills(this.#plan.dir));
  }

  /** Ends when no drill runs. */
  async ended(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** Starts a drill if one is due, now or later. Call it when there may be a newer backup. */
  consider(newest: MadeBackup | null): void {
    this.#newest = newest;
    clearTimeout(this.#timer);
    if (newest === null || this.#running !== null || this.#plan.stopping.aborted) return;
    const waitMs = this.#untilDue(newest);
    if (waitMs > 0) {
      // No timer may be longer than 24 days.
      const again = (): void => this.consider(this.#newest);
      this.#timer = setTimeout(again, Math.min(waitMs, DAY_MS)).unref();
      return;
    }
    this.#running = this.#drill(newest.file).finally(() => {
      this.#running = null;
      this.consider(this.#newest);
    });
  }

  /** One that did not pass is repeated with the next backup. At most the interval, even if the clock was set back. */
  #untilDue({ file }: MadeBackup): number {
    const { everyMs } = this.#plan;
    const { last } = this.#known;
    if (last === null || (last.failure !== null && last.file !== file)) return 0;
    return Math.min(everyMs, last.at + everyMs - Date.now());
  }

  async #drill(file: string): Promise<void> {
    const { run, log, stopping } = this.#plan;
    const startedAt = performance.now();
    try {
      const drilled = await run(file, stopping);
      const duration_ms = Math.round(performance.now() - startedAt);
      log.info({ file, ...drilled, duration_ms }, "backup drill passed");
      await this.#record(file, null);
    } catch (error) {
      if (stopping.aborted || error instanceof StoppedError) return;
      const reason = messageOf(error);
      const is_skipped = error instanceof DrillSkipped;
      if (is_skipped) log.warn({ file, reason }, "backup drill skipped, it will be retried");
      else log.error({ file, reason }, "backup drill failed, it will be retried");
      await this.#record(file, { reason, is_skipped });
    }
  }

  async #record(
    file: string,
    failed: { readonly reason: string; readonly is_skipped: boolean } | null,
  ): Promise<void> {
    const { dir, log } = this.#plan;
    const at = Date.now();
    const failure = failed?.reason ?? null;
    const record = {
      last: { at, file, failure, is_skipped: failed?.is_skipped ?? false },
      passed_at: failed === null ? at : this.#known.passed_at,
    };
    this.#note(record);
    try {
      const text = `${JSON.stringify(record)}\n`;
      await writeFile(join(dir, RECORD), text, { mode: 0o600, flag: REPLACE });
    } catch (error) {
      log.warn({ dir, reason: messageOf(error) }, "the result of a backup drill cannot be written");
    }
  }

  #note(known: Known): void {
    this.#known = known;
    this.#plan.onStatus({ ...known, every_ms: this.#plan.everyMs });
  }
}
