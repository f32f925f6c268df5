/** What is in a database file, seen once its server has ended. */
import { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";

export function count(file: string): number {
  const db = new Database(file, { readonly: true });
  try {
    const row = db.query<{ count: number }, []>("SELECT count(*) AS count FROM signals").get();
    return row?.count ?? 0;
  } finally {
    db.close();
  }
}

/** The log included, where one was left. */
export function databaseBytes(file: string): number {
  const files = [file, `${file}-wal`].filter((path) => existsSync(path));
  return files.reduce((bytes, path) => bytes + statSync(path).size, 0);
}
