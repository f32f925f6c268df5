/** `serve --check`: whether `serve` would start with this configuration. Creates and changes nothing. */
import { accessSync, existsSync } from "node:fs";
import { dirname } from "node:path";
import { explainPortInUse, type ServeConfig } from "../config.ts";
import { parseAddress } from "../net/address.ts";
import { FOLDER_ACCESS, unusableFolder } from "../ops/backup-folder.ts";
import { askStatus } from "../ops/client.ts";
import type { ServerStatus } from "../ops/server.ts";
import { refuseDataFolder } from "./backup.ts";
import { printNote } from "./print.ts";

export async function checkConfig(config: ServeConfig): Promise<void> {
  const server = await askStatus(config.dataDir);
  await requireStart(config, server);
  printNote("The configuration is valid: serve would start with it.");
  if (server !== null) {
    printNote(
      `A server uses ${config.dataDir} now: restart it to apply changes of the configuration.`,
    );
  }
}

/** Throws `UserError` with the sentence that `serve` would end with, or log. `server`: the one of this folder. */
export async function requireStart(
  config: ServeConfig,
  server: ServerStatus | null,
): Promise<void> {
  if (config.backups !== null) refuseDataFolder(config.backups.dir, config.dataDir);
  const { checkApp } = await import("../app.ts");
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
