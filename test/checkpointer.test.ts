import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { DATABASE_NAME } from "../src/store/sqlite/folder.ts";
import { SqliteStore } from "../src/store/sqlite/store.ts";
import { openDatabase } from "../src/store/sqlite/open.ts";
import { SqliteRegistry } from "../src/store/sqlite/registry.ts";
import { onCleanup, query, temporaryFolder } from "./_setup.ts";

const SIGNALS = 10_000;

test("the log is copied into the database while signals come in, and begun anew", async () => {
  const dataDir = temporaryFolder();
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  const registry = new SqliteRegistry(db);
  const { desk } = registry.createDesk("alpha", { ifMissing: false });
  const { record } = registry.mintKey({ desk: "alpha", label: null, expiresInMs: null });
  const fatal: string[] = [];
  const store = await SqliteStore.open(dataDir, {
    onFatal: (reason) => fatal.push(reason),
    onProblem: ({ reason }) => fatal.push(reason),
  });
  onCleanup(() => store.close());
  const append = (metadata: string | null) =>
    store.append({
      keyId: record.id,
      deskId: desk.id,
      receivedAt: Date.now(),
      signal: {
        source: "venue_1",
        type: "stock",
        symbol: "AAPL",
        side: "open",
        direction: null,
        price: null,
        quantity: null,
        signal_time: null,
        client_signal_id: crypto.randomUUID(),
        metadata,
      },
    });
  const size = (suffix: string): number => statSync(join(dataDir, DATABASE_NAME) + suffix).size;
  const before = size("");
  for (let sent = 0; sent < SIGNALS; sent += 500) {
    await Promise.all(Array.from({ length: 500 }, () => append(null)));
  }
  // A commit by itself copies the log only at 256 MiB; this one is far smaller.
  while (size("") === before) await append(null);
  expect(size("-wal")).toBeLessThan(128 * 1024 * 1024);
  // Begun anew: what comes now goes to the log's beginning, and the file does not grow.
  const logSize = size("-wal");
  for (let sent = 0; sent < 500; sent += 1) await append(null);
  expect(size("-wal")).toBe(logSize);
  expect(fatal).toEqual([]);
  expect(query(dataDir, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
}, 60_000);
