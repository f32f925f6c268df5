import { expect, test } from "bun:test";
import { pino } from "pino";
import { logOptions } from "../../src/lib/log.ts";
import { StorageLog } from "../../src/ops/storage-log.ts";
import { type LogLine, temporaryFolder } from "../kit/setup.ts";

function start(dataDir: string): { lines: LogLine[]; storageLog: StorageLog } {
  const lines: LogLine[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as LogLine);
  return { lines, storageLog: new StorageLog(dataDir, pino(logOptions("info"), { write })) };
}

const full = {
  kind: "unavailable",
  obstacle: "disk",
  reason: "the disk is full",
  error: "SQLITE_FULL: disk is full",
  signals: 3,
} as const;

test("a problem is logged at once and not per batch; so is its end, and then the next problem", () => {
  const { lines, storageLog } = start(temporaryFolder());
  for (let batch = 0; batch < 100; batch += 1) storageLog.problem(full);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ level: "error", reason: full.reason, signals: 3 });
  storageLog.recovered();
  expect(lines[1]).toMatchObject({ level: "info", msg: "signals are stored again" });
  storageLog.problem(full);
  // Includes the signals that were not logged before.
  expect(lines[2]).toMatchObject({ level: "error", signals: 300 });
});

test.each([
  ["disk", "free some space"],
  ["lock", "another process has locked the database: stop it"],
  [null, "please report this"],
] as const)("an obstacle (%s) is logged with advice and the free space", (obstacle, advice) => {
  const { lines, storageLog } = start(temporaryFolder());
  storageLog.problem({ ...full, obstacle });
  expect(lines[0]?.msg).toStartWith("signals were not stored: ");
  expect(lines[0]?.msg).toContain(advice);
  expect(lines[0]?.["free_bytes"]).toBeGreaterThan(0);
});

test("a problem is logged even if the free space is not known", () => {
  const { lines, storageLog } = start("/nowhere/at/all");
  storageLog.problem(full);
  expect(lines[0]).toMatchObject({ free_bytes: null });
});
