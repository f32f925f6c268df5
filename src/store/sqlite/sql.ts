/** SQLite behind the port of the records. */
import type { Database } from "bun:sqlite";
import { UserError } from "../../lib/errors.ts";
import type { Reader, Sql, Tx, Value } from "../records/sql.ts";
import { hasMoved } from "./files/transaction.ts";
import { hasLogMoved } from "./log/removed-log.ts";

interface Connections {
  readonly reader: Database;
  /** Nothing else uses it, or it would be in its transactions by chance. The reader's will do where nothing is done at once. */
  readonly writer?: Database;
  readonly now?: () => number;
  /** Returns the error that a failed read throws instead. */
  readonly explain?: (error: unknown) => unknown;
}

/** One queue per thread: to wait for the lock blocks the thread, and with it the transaction that has the lock. */
let last: Promise<unknown> = Promise.resolve();

export function sqliteSql({ reader, writer = reader, now = Date.now, explain }: Connections): Sql {
  return {
    ...reading(reader, explain),
    get now() {
      return now();
    },
    transaction(work) {
      const result = last.then(() =>
        change(writer, now, work, { check: () => refuseReplaced(writer) }),
      );
      last = result.catch(() => {});
      return result;
    },
  };
}

export function reading(db: Database, explain = (error: unknown) => error): Omit<Reader, "now"> {
  const read = async <T>(work: () => T): Promise<T> => {
    try {
      return work();
    } catch (error) {
      throw explain(error);
    }
  };
  return {
    all: <Row>(sql: string, ...values: Value[]) =>
      read(() => db.query<Row, Named>(sql).all(named(values))),
    get: <Row>(sql: string, ...values: Value[]) =>
      read(() => db.query<Row, Named>(sql).get(named(values))),
  };
}

type Named = Record<string, Value>;

/** Bun numbers values in the order in which the statement names them, not by the numbers in `$1` and `$2`. */
function named(values: readonly Value[]): Named {
  return Object.fromEntries(values.map((value, index) => [index + 1, value]));
}

/** `check` may refuse it, by an error, as soon as it has the lock. */
export async function change<T>(
  db: Database,
  now: () => number,
  work: (tx: Tx) => Promise<T>,
  { begin = "BEGIN IMMEDIATE", check }: { begin?: string; check?: () => void } = {},
): Promise<T> {
  db.run(begin);
  try {
    check?.();
    const result = await work({
      ...reading(db),
      now: now(),
      run: async (sql, ...values) => db.query<unknown, Named>(sql).run(named(values)).changes,
    });
    db.run("COMMIT");
    return result;
  } catch (error) {
    // SQLite has ended it already after some errors, such as a full disk.
    if (db.inTransaction) db.run("ROLLBACK");
    throw error;
  }
}

/**
 * A restore holds the lock until it has renamed the database, and a server may end after its log was
 * removed: a change that waited for them would be lost.
 */
function refuseReplaced(db: Database): void {
  const isReplaced = hasMoved(db);
  if (!isReplaced && !hasLogMoved(db)) return;
  throw new UserError(
    isReplaced
      ? "The database was replaced by a restore while this command waited: run it again."
      : "The database's log was removed meanwhile, and nothing was changed: try again when the server has restarted.",
  );
}
