/** What backups a server is told to make, and what it has done. */
import type { DrillStatus } from "./drill.ts";
import type { MadeBackup } from "./folder.ts";
import type { Keep } from "./keep.ts";

export interface BackupPlan {
  readonly dir: string;
  readonly everyMs: number;
  readonly keep: Keep;
  /** A shell script that sends a backup away, as `backupScript` returns it; null: they stay. */
  readonly command: string | null;
  /** The interval between restore drills; null: none are made. */
  readonly drillMs: number | null;
}

/** What was last done. Times are epoch milliseconds. */
export interface BackupStatus {
  readonly dir: string;
  readonly every_ms: number;
  readonly keep: Keep;
  /** The last one made, or else the newest of this database in the folder at the start; null: there is none. */
  readonly newest: MadeBackup | null;
  /** When the last one of this server was complete and verified; null: none yet. */
  readonly verified_at: number | null;
  /** Why the last attempt failed; null if it succeeded, or none has ended yet. */
  readonly failure: BackupFailure | null;
  /** When the work on the disk began that is still not done after a whole interval; null: there is none. */
  readonly stuck_since: number | null;
  /** What the command did since the start of the server; null without a command. */
  readonly sending: {
    /** The last one that it sent; `at` is when that backup was made. */
    readonly sent: MadeBackup | null;
    /** As above. `reason` may repeat what the command wrote to stderr. */
    readonly failure: (BackupFailure & { readonly timed_out: boolean }) | null;
  } | null;
  /** Null without drills. An earlier version has none. */
  readonly drill?: DrillStatus | null;
}

export function initialStatus({ dir, everyMs, keep, command, drillMs }: BackupPlan): BackupStatus {
  return {
    dir,
    every_ms: everyMs,
    keep,
    newest: null,
    verified_at: null,
    failure: null,
    stuck_since: null,
    sending: command === null ? null : { sent: null, failure: null },
    drill: drillMs === null ? null : { every_ms: drillMs, last: null, passed_at: null },
  };
}

interface BackupFailure {
  readonly at: number;
  readonly reason: string;
}
