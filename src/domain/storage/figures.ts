/** What metrics say of the storage. */

export interface FiguresQuery {
  readonly now: number;
  readonly desksMax: number;
  readonly keysMax: number;
}

/** The state of the storage, for metrics. */
export interface StorageFigures {
  readonly databaseBytes: number;
  /** The log is part of the database until a checkpoint has copied it. */
  readonly logBytes: number;
  /** Desks that are not archived, up to the limit, the latest signal first. */
  readonly desks: readonly {
    readonly id: number;
    readonly name: string;
    readonly createdAt: number;
    readonly latestSignalAt: number | null;
  }[];
  readonly desksTotal: number;
  /** Active keys that send signals, up to the limit, the last used first. */
  readonly keys: readonly {
    readonly id: string;
    readonly desk: string;
    /** Up to a minute old. */
    readonly lastUsedAt: number | null;
  }[];
  readonly keysTotal: number;
  /** Active keys, of readers too, without a successor that expire within `EXPIRING_SOON_MS`. */
  readonly keysExpiring: number;
}
