/**
 * What the fault tests share. `bun run test:faults` runs them at full scale, `.ci/run` with small numbers.
 */
import { expect } from "bun:test";
import type { LoadResult } from "../_client.ts";
import { requirePrograms } from "../_programs.ts";
import { query } from "../_setup.ts";

requirePrograms("faults");

/** Full scale, about 15 minutes in all; else numbers small enough for every run of the tests. */
export const isFull = process.env["FAULTS"] === "full";

/** The full number, or the small one. */
export function scale(full: number, quick: number): number {
  return isFull ? full : quick;
}

/** One line a fault: what was done to the server, how often, and what was found to hold. */
export function report(
  fault: string,
  { injected, times, checked }: { injected: string; times: number; checked: string },
): void {
  process.stderr.write(`FAULT ${fault} | ${injected} | ${times} times | ${checked}\n`);
}

/**
 * Holds the database to the promise: each signal that was answered 201 or 200 is there once, with the
 * id of its answer; ids rise in the order of storage; SQLite finds nothing wrong. Returns how many
 * were acknowledged.
 */
export function expectKept(dataDir: string, results: readonly LoadResult[]): number {
  expect(query(dataDir, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  const rows = query<{ id: string; clientId: string }>(
    dataDir,
    "SELECT id, client_signal_id AS clientId FROM signals ORDER BY seq",
  );
  const stored = new Map(rows.map(({ id, clientId }) => [clientId, id]));
  expect(stored.size, "every client_signal_id is stored once").toBe(rows.length);
  const acknowledged = results.filter(({ outcome }) => outcome === 201 || outcome === 200);
  const lost = acknowledged.filter(({ clientId, id }) => stored.get(clientId) !== id);
  expect(lost.length, "acknowledged signals that are missing").toBe(0);
  const ids = rows.map(({ id }) => id);
  expect(ids, "ids rise in the order of storage").toEqual(ids.toSorted());
  return acknowledged.length;
}
