/**
 * Chooses the engine: SQLite in a data folder. Code outside `store/` imports only this file of it, so another engine is a
 * folder here and a choice in this file.
 */
import { sqlite } from "./sqlite/engine.ts";

export { problemOfFolder, refuseForeignFolder } from "./sqlite/files/folder.ts";
export { findWrongPermissions } from "./sqlite/files/permissions.ts";

export const {
  files: databaseFiles,
  hasDatabase,
  requireDatabase,
  isLocked,
  openServerStorage,
  openConsoleStorage,
  withStorage,
  inspectStorage,
} = sqlite;
