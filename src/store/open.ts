/**
 * Chooses the engine: PostgreSQL for a URL, otherwise SQLite in a data folder. Code outside `store/` imports only this
 * file of it, so another engine is a folder here and a choice in this file. `where`: the URL or the folder.
 */
import type { Copied, Engine, MoveOptions } from "../domain/storage/engine.ts";
import type { DatabaseFiles } from "../domain/storage/files.ts";
import { isStoreUrl } from "../lib/place.ts";
import { postgresql } from "./postgres/engine.ts";
import { fromPostgres, toPostgres } from "./postgres/copies/move.ts";
import { copyAll } from "./records/copy/copy.ts";
import { fromSqlite, toSqlite } from "./sqlite/copies/move.ts";
import { sqlite } from "./sqlite/engine.ts";

export { problemOfFolder, refuseForeignFolder } from "./sqlite/files/folder.ts";
export { findWrongPermissions } from "./sqlite/files/permissions.ts";

/** For commands that are about files, and no other database. */
export const databaseFiles = sqlite.files;

/** Null if the database is not a file in the folder. */
export function filesOf(where: string): DatabaseFiles | null {
  return engineOf(where).files;
}

function engineOf(where: string): Engine {
  return isStoreUrl(where) ? postgresql : sqlite;
}

export const hasDatabase: Engine["hasDatabase"] = (where) => engineOf(where).hasDatabase(where);

export const requireDatabase: Engine["requireDatabase"] = (where) =>
  engineOf(where).requireDatabase(where);

export const isLocked: Engine["isLocked"] = (where) => engineOf(where).isLocked(where);

export const openServerStorage: Engine["openServerStorage"] = (where, events) =>
  engineOf(where.store ?? where.dataDir).openServerStorage(where, events);

export const openConsoleStorage: Engine["openConsoleStorage"] = (where, options) =>
  engineOf(where).openConsoleStorage(where, options);

export const withStorage: Engine["withStorage"] = (where, work, options) =>
  engineOf(where).withStorage(where, work, options);

export const inspectStorage: Engine["inspectStorage"] = (where, work, options) =>
  engineOf(where).inspectStorage(where, work, options);

/** Copies everything from a folder to a URL or back, and compares it. Run again, it goes on. Throws `UserError`. */
export function copyStorage(from: string, to: string, options: MoveOptions): Promise<Copied> {
  const open = isStoreUrl(from) ? fromPostgres : fromSqlite;
  const make = isStoreUrl(to) ? toPostgres : toSqlite;
  return open(from, (source) => make(to, (target) => copyAll(source, target, options)));
}

export const verifyStore = postgresql.verify;
