/** What `status` and `doctor` know before they check anything. */
import { resolve } from "node:path";
import { readStored, type Stored } from "../checks/stored.ts";
import type { Context } from "../checks/finding.ts";
import { newestSignals } from "../domain/signal/chunks.ts";
import { messageOf, UserError } from "../lib/errors.ts";
import { askStatus } from "../ops/client.ts";
import { filesOf, inspectStorage, requireDatabase } from "../store/open.ts";
import { explain, toType } from "../cli/hint.ts";
import { placeName } from "../lib/place.ts";

/** `folder`: as it was named; `data`: where the data is. Throws `UserError` without a database. */
export async function contextOf(folder: string, data = folder): Promise<Context> {
  const dataDir = resolve(folder);
  requireDatabase(data);
  const server = await askStatus(dataDir);
  const now = Date.now();
  let stored: Promise<Stored> | undefined;
  return {
    dataDir,
    files: filesOf(data),
    server,
    now,
    config: null,
    isDeep: false,
    toType: (command) => toType(command, data),
    explain: (error) =>
      explain(error, data) ?? `unexpected failure, please report it: ${messageOf(error)}`,
    newest: async (limit) =>
      (await inspectStorage(data, ({ signals }) => newestSignals(signals, limit))) ?? [],
    stored: () => (stored ??= readOnce()),
    requireStart: () => Promise.resolve(),
  };

  async function readOnce(): Promise<Stored> {
    const found = await inspectStorage(data, (storage) => readStored(storage, server, now));
    if (found !== null) return found;
    throw new UserError(
      `The database in ${placeName(data)} is empty: create a desk`,
      "desk create NAME",
    );
  }
}
