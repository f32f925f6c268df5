import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { DATABASE_NAME } from "../src/store/sqlite/folder.ts";
import { SqliteStore } from "../src/store/sqlite/store.ts";
import { onCleanup, query } from "./_setup.ts";
import { prepare } from "./_submissions.ts";

const SIGNALS = 10_000;

test("the log is copied into the database while signals come in, and begun anew", async () => {
  const { dataDir, submit } = prepare();
  const fatal: string[] = [];
  const store = await SqliteStore.open(dataDir, {
    onFatal: (reason) => fatal.push(reason),
    onProblem: ({ reason }) => fatal.push(reason),
    onRecovered: () => {},
  });
  onCleanup(() => store.close());
  const append = () => store.append(submit({ signal: { client_signal_id: crypto.randomUUID() } }));
  const size = (suffix: string): number => statSync(join(dataDir, DATABASE_NAME) + suffix).size;
  const before = size("");
  for (let sent = 0; sent < SIGNALS; sent += 500) {
    await Promise.all(Array.from({ length: 500 }, () => append()));
  }
  // A commit by itself copies the log only at 256 MiB; this one is far smaller.
  while (size("") === before) await append();
  expect(size("-wal")).toBeLessThan(128 * 1024 * 1024);
  // Begun anew: what comes now goes to the log's beginning, and the file does not grow.
  const logSize = size("-wal");
  for (let sent = 0; sent < 500; sent += 1) await append();
  expect(size("-wal")).toBe(logSize);
  expect(fatal).toEqual([]);
  expect(query(dataDir, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
}, 60_000);
