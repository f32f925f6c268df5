/**
 * Looks for troubles every few seconds, on the console's thread: a few queries for all desks together. Of what only a
 * server itself knows, it tells itself; of what is in the database, one of its servers tells.
 */
import type { Watched } from "../../domain/storage/notices.ts";
import { SECOND_MS } from "../../lib/text/time.ts";
import { Book } from "./book.ts";
import { changes } from "./changes.ts";
import { checks } from "./checks.ts";
import { differing } from "./differing.ts";
import { keys } from "./keys.ts";
import { outageOfDesks, outageOfServer } from "./outage.ts";
import { rejects } from "./rejects.ts";
import type { Round, Row, RowMaker, Sources } from "./row.ts";
import { silence } from "./silence.ts";

const ownRows: readonly RowMaker[] = [outageOfServer, checks];
const sharedRows: readonly RowMaker[] = [outageOfDesks, silence, rejects, differing, keys, changes];

/** Rounds are not exactly as long as they should be. */
const EARLY_MS = SECOND_MS;

interface Part {
  readonly book: Book;
  readonly rows: readonly Row[];
}

export class Watch {
  readonly #sources: Sources;
  readonly #onProblem: (error: unknown) => void;
  readonly #own: Part;
  readonly #shared: Part;
  readonly #lookedAt = new Map<Row, number>();
  #watched: Watched = { hasOperator: false, desks: [] };

  constructor(sources: Sources, onProblem: (error: unknown) => void) {
    this.#sources = sources;
    this.#onProblem = onProblem;
    this.#own = partOf(sources, ownRows);
    this.#shared = partOf(sources, sharedRows);
  }

  /** `isDeciding`: of the servers of this database, this one tells of what is in it. */
  async round(isDeciding: boolean): Promise<void> {
    const isReadable = await this.#try(async () => {
      this.#watched = await this.#sources.notices.watched();
    });
    if (!isDeciding) this.#shared.book.close();
    for (const { book, rows } of isDeciding ? [this.#own, this.#shared] : [this.#own]) {
      if (!(await this.#try(() => book.open()))) continue;
      for (const row of rows) {
        if (isReadable || row.isOffline === true) await this.#look(row);
      }
      if (isReadable) await this.#try(() => book.save());
    }
  }

  async #look(row: Row): Promise<void> {
    const now = this.#sources.now();
    const ago = now - (this.#lookedAt.get(row) ?? 0);
    // A clock that was set back delays nothing.
    if (ago >= 0 && ago < row.everyMs - EARLY_MS) return;
    this.#lookedAt.set(row, now);
    const watched = this.#watched;
    const ids = new Set(watched.desks.map(({ id }) => id));
    const isWatched: Round["isWatched"] = (deskId) =>
      deskId === null ? watched.hasOperator : ids.has(deskId);
    await this.#try(() => row.look({ now, watched, isWatched }));
  }

  async #try(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      this.#onProblem(error);
      return false;
    }
  }
}

function partOf(sources: Sources, makers: readonly RowMaker[]): Part {
  const book = new Book(sources.notices, sources.notify, sources.now);
  return { book, rows: makers.map((make) => make(sources, book)) };
}
