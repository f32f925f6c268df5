/** What `status` and `doctor` know before they check anything. */
import { resolve } from "node:path";
import { readStored, type Stored } from "../checks/stored.ts";
import type { Context } from "../checks/finding.ts";
import { messageOf, UserError } from "../lib/errors.ts";
import { askStatus } from "../ops/client.ts";
import { inspectStorage, requireDatabase } from "../store/open.ts";
import { explain, toType } from "../cli/hint.ts";

/** `data`: the folder as it was named. Throws `UserError` without a database. */
export async function contextOf(data: string): Promise<Context> {
  const dataDir = resolve(data);
  requireDatabase(dataDir);
  const server = await askStatus(dataDir);
  const now = Date.now();
  let stored: Promise<Stored> | undefined;
  return {
    dataDir,
    server,
    now,
    config: null,
    isDeep: false,
    toType: (command) => toType(command, data),
    explain: (error) =>
      explain(error, data) ?? `unexpected failure, please report it: ${messageOf(error)}`,
    stored: () => (stored ??= readOnce()),
    requireStart: () => Promise.resolve(),
  };

  async function readOnce(): Promise<Stored> {
    const found = await inspectStorage(dataDir, (storage) => readStored(storage, server, now));
    if (found !== null) return found;
    throw new UserError(`The database in ${dataDir} is empty: create a desk`, "desk create NAME");
  }
}
