/** What is known of the backups. */
import { backupOf, newestFirst } from "../backups/folder.ts";
import type { BackupStatus } from "../backups/backups.ts";
import { databaseFiles } from "../store/open.ts";
import type { Context } from "./finding.ts";

/** What a running server knows, or else what the folder tells; null: this configuration makes none. */
export async function statusOf({ server, config, dataDir }: Context): Promise<BackupStatus | null> {
  const plan = config?.backups ?? null;
  if (server !== null && server.backups !== null) return server.backups;
  if (plan === null) return null;
  const { dir, everyMs, keep } = plan;
  const own = databaseFiles.findOwn(databaseFiles.pathIn(dataDir), await newestFirst(dir));
  const newest = own === null ? null : backupOf(own);
  const nothing = { verified_at: null, failure: null, stuck_since: null, sending: null };
  return { dir, every_ms: everyMs, keep, newest, ...nothing };
}
