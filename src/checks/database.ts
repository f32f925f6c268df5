/** The database: whether it opens, is ours, and is sound, as far as can be read in a few seconds. */
import { SECOND_MS } from "../lib/text/time.ts";
import { formatTime } from "../lib/text/words.ts";
import { databaseFiles } from "../store/open.ts";
import { backupsOf } from "./backups.ts";
import { type Context, type Finding, ok, problem } from "./finding.ts";

const SAMPLE_MS = 3 * SECOND_MS;

/** Throws `UserError` for a database that cannot be used. */
export async function checkDatabase(context: Context): Promise<Finding> {
  const { dataDir, isDeep, toType } = context;
  const path = databaseFiles.pathIn(dataDir);
  const sample = await databaseFiles.sampleIn(dataDir, SAMPLE_MS);
  const damage = isDeep ? databaseFiles.problemOf(await databaseFiles.verify(path)) : sample.damage;
  if (damage !== null) {
    return problem(
      `${path} is damaged (${damage}).`,
      `stop the server, then restore a backup (the current database is kept): ${toType("restore FILE --force")}`,
    );
  }
  const { share } = sample;
  if (share === null) {
    return problem(
      `${path} is empty.`,
      `if it had signals, stop the server and restore a backup: ${toType("restore FILE --force")}; a new one gets its tables from ${toType("desk create NAME")}`,
    );
  }
  if (isDeep) return ok("All of it was read, and is sound.");
  const percent = Math.floor(share * 100) || "less than 1";
  const read = share === 1 ? "all signals" : `${percent} % of the signals`;
  return ok(`It opens, and ${read} were read and are sound; ${await describeVerified(context)}.`);
}

/** Every backup is a copy that was verified whole before it got its name. */
async function describeVerified(context: Context): Promise<string> {
  const newest = (await backupsOf(context))?.newest ?? null;
  return newest === null
    ? "to verify all of it, add --deep"
    : `all of it was last verified with the backup of ${formatTime(newest.at)}`;
}
