/** What an engine is: a folder in `store/` that offers this. `store/open.ts` chooses one. */
import type { Awaitable } from "./awaitable.ts";
import type { DatabaseFiles } from "./files.ts";
import type { ConsoleStorage, ServerStorage, ServerStorageEvents, Storage } from "./storage.ts";

export interface ServerPlace {
  /** The server's own folder, and without a store the database's. */
  readonly dataDir: string;
  /** Null: in the folder. */
  readonly store: string | null;
  readonly externalCheckpoints: boolean;
}

/** What checks look at. */
export type Inspected = Pick<Storage, "registry" | "signals" | "activity" | "replication">;

/** `dataDir`: the folder of the data. Each method throws `UserError` if the data cannot be used. */
export interface Engine {
  /** Null if the database is not a file in the folder. */
  readonly files: DatabaseFiles | null;
  readonly hasDatabase: (dataDir: string) => boolean;
  /** Throws if there is none. */
  readonly requireDatabase: (dataDir: string) => void;
  /** Whether a server or a restore has the data. Creates nothing. False if this user cannot tell. */
  readonly isLocked: (dataDir: string) => boolean;
  /** For `serve`. Throws if another server has the data. */
  readonly openServerStorage: (
    where: ServerPlace,
    events: ServerStorageEvents,
  ) => Promise<ServerStorage>;
  /** For the console's thread; the server has opened the data before. */
  readonly openConsoleStorage: (
    dataDir: string,
    options: { readonly now: () => number; readonly onWarning: (sentence: string) => void },
  ) => Promise<ConsoleStorage>;
  /** Opens the storage for one command and closes it after. `create`: if there is none. */
  readonly withStorage: <T>(
    dataDir: string,
    work: (storage: Storage) => Awaitable<T>,
    options?: { readonly create?: boolean },
  ) => Promise<T>;
  /**
   * For checks. Creates and changes nothing. Returns null without a database, and throws what
   * {@link openServerStorage} would. `forServer`: also if it could not write, or make the tables.
   */
  readonly inspectStorage: <T>(
    dataDir: string,
    work: (storage: Inspected) => Awaitable<T>,
    options?: { readonly forServer?: boolean },
  ) => Promise<T | null>;
}

/** Of a copy of everything from one engine to another. */
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
