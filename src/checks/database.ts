/** The database: whether it opens, is ours, and is sound, as far as can be read in a few seconds. */
import { SECOND_MS } from "../lib/text/time.ts";
import { isLoopbackHost } from "../http/address.ts";
import { formatTime } from "../lib/text/words.ts";
import { backupsOf } from "./backups.ts";
import { type Context, type Finding, ok, problem, warning } from "./finding.ts";

const SAMPLE_MS = 3 * SECOND_MS;

/** Throws `UserError` for a database that cannot be used. */
export async function checkDatabase(context: Context): Promise<Finding> {
  const { dataDir, files, isDeep, toType } = context;
  if (files === null) {
    await context.stored();
    return ok("It opens; to verify what is in it, run signalbox verify.");
  }
  const path = files.pathIn(dataDir);
  const sample = await files.sampleIn(dataDir, SAMPLE_MS);
  const damage = isDeep ? files.problemOf(await files.verify(path)) : sample.damage;
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

/** Null for a database in a folder, which is on one machine anyway. */
export async function checkReplication({ stored }: Context): Promise<Finding | null> {
  const { replication } = await stored();
  if (replication === null) return null;
  const { host, isEncrypted, isSynchronous } = replication;
  if (!isEncrypted && !isLoopbackHost(host)) {
    return warning(
      `What is sent to the database at ${host} is not encrypted.`,
      "add ?sslmode=verify-full to the URL of --store",
    );
  }
  if (isSynchronous) return ok(`Each commit on ${host} waits for a standby.`);
  return warning(
    `An acknowledged signal is on one machine, ${host}.`,
    "set up synchronous replication: docs/scale.md",
  );
}

/** Every backup is a copy that was verified whole before it got its name. */
async function describeVerified(context: Context): Promise<string> {
  const newest = (await backupsOf(context))?.newest ?? null;
  return newest === null
    ? "to verify all of it, add --deep"
    : `all of it was last verified with the backup of ${formatTime(newest.at)}`;
}
