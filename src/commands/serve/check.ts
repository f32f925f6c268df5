/** `serve --check`: whether `serve` would start with this configuration. Creates and changes nothing. */
import { accessSync, existsSync } from "node:fs";
import { dirname } from "node:path";
import { findExpired } from "../../checks/certificate.ts";
import { explainPortInUse, type ServeConfig } from "../../serve/config.ts";
import { parseAddress } from "../../http/address.ts";
import { TrustedProxies } from "../../http/transport.ts";
import { FOLDER_ACCESS, newestFirst, unusableFolder } from "../../backups/folder.ts";
import { UserError } from "../../lib/errors.ts";
import { askStatus } from "../../ops/client.ts";
import type { ServerStatus } from "../../ops/server.ts";
import { databaseFiles, hasDatabase } from "../../store/open.ts";
import { printNote } from "../../cli/print.ts";

/** Of a large database, so much is read. */
const SAMPLE_MS = 3_000;

export async function checkConfig(config: ServeConfig): Promise<void> {
  const server = await askStatus(config.dataDir);
  await requireStart(config, server);
  if (config.store === null) await requireSound(config.dataDir);
  await requireOwnBackups(config);
  printNote("The configuration is valid: serve would start with it.");
  new TrustedProxies(config.trustedProxies).warn((sentence) => printNote(`! ${sentence}`));
  const expired = findExpired(config);
  if (expired !== null) {
    printNote(`! ${expired.sentence}`);
    printNote(`  ${expired.next}`);
  }
  if (server !== null) {
    printNote(
      `A server uses ${config.dataDir} now: restart it to apply changes of the configuration.`,
    );
  }
}

/** Throws `UserError` for damage that a start would not notice: `serve` would fail later, at those pages. */
async function requireSound(dataDir: string): Promise<void> {
  const { damage } = await databaseFiles.sampleIn(dataDir, SAMPLE_MS);
  if (damage === null) return;
  throw new UserError(
    `${databaseFiles.pathIn(dataDir)} is damaged (${damage}): serve would start, and fail where it is damaged. Restore a backup with the server stopped (the current database is kept)`,
    "restore FILE --force",
  );
}

/** The server only logs this, as the failure of each backup. */
async function requireOwnBackups({ backups, dataDir }: ServeConfig): Promise<void> {
  if (backups === null || !hasDatabase(dataDir)) return;
  databaseFiles.refuseOthers(databaseFiles.pathIn(dataDir), await newestFirst(backups.dir));
}

/** Throws `UserError` with the sentence that `serve` would end with, or log. `server`: the one of this folder. */
export async function requireStart(
  config: ServeConfig,
  server: ServerStatus | null,
): Promise<void> {
  const { checkApp } = await import("../../serve/app.ts");
  try {
    await checkApp(config, portsOf(server));
  } catch (error) {
    throw explainPortInUse(error, config);
  }
  if (config.backups !== null) requireWritable(config.backups.dir);
}

function portsOf(server: ServerStatus | null): ReadonlySet<number> {
  const addresses = [
    server?.listen,
    server?.console_listen,
    server?.ops_listen,
    server?.acme?.http_listen,
    server?.read_listen,
  ];
  return new Set(addresses.flatMap((text) => (text ? [parseAddress(text).port] : [])));
}

/** The server only logs this, because a backup disk may come back. */
function requireWritable(dir: string): void {
  let folder = dir;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  try {
    accessSync(`${folder}/`, FOLDER_ACCESS);
  } catch (error) {
    throw unusableFolder(dir, error);
  }
}
