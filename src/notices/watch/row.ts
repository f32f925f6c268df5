/** A row of the table in docs/notices.md, and what it has to work with. */
import type { CheckFinding, Notify } from "../../domain/notice/notice.ts";
import type { Outage } from "../../domain/storage/append.ts";
import type { Watched } from "../../domain/storage/notices.ts";
import type { ConsoleStorage } from "../../domain/storage/storage.ts";
import type { Book } from "./book.ts";

export interface Sources extends Pick<
  ConsoleStorage,
  "activity" | "audit" | "notices" | "registry"
> {
  readonly notify: Notify;
  readonly outage: () => Outage | null;
  /** What the checks found about which the operator gets notices; null: it is not known yet. */
  readonly findings: () => Promise<readonly CheckFinding[] | null>;
  /** The server's name; empty if no other server uses its database. */
  readonly node: string;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

export interface Round {
  readonly now: number;
  readonly watched: Watched;
  /** Whether anybody is told of this desk, or of what concerns the operator (null). */
  readonly isWatched: (deskId: number | null) => boolean;
}

export interface Row {
  readonly everyMs: number;
  /** Works while the database cannot be read. */
  readonly isOffline?: boolean;
  readonly look: (round: Round) => Promise<void>;
}

export type RowMaker = (sources: Sources, book: Book) => Row;
