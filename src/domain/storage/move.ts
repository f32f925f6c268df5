/** Copying everything from one engine to another. */

export interface MoveOptions {
  /** Stops it between two parts. */
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: MoveProgress) => void) | undefined;
}

/** How many signals are there, and how many it will be. */
export interface MoveProgress {
  readonly phase: "copied" | "compared";
  readonly signals: number;
  readonly total: number;
}

/** What source and target have, after the comparison. */
export interface Copied {
  /** By table. */
  readonly tables: Readonly<Record<string, number>>;
  readonly newest_id: string | null;
}
