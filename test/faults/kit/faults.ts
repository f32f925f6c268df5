/** Shared by the fault tests. `bun run test:faults` runs them at full scale, `.ci/run` with small numbers. */
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import type { LoadResult } from "../../kit/client.ts";
import { asShown, type ServeProcess, signalbox, spawn } from "../../kit/cli.ts";
import { requirePrograms } from "../../kit/programs.ts";
import { post, query } from "../../kit/setup.ts";

requirePrograms("faults");

export const isFull = process.env["FAULTS"] === "full";

/** The full number, or the small one. */
export function scale(full: number, small: number): number {
  return isFull ? full : small;
}

/** Prints what was done to the server, how often, and what was found. */
export function report(fault: string, times: number, found: string): void {
  process.stderr.write(`FAULT ${fault} | ${times} times | ${found}\n`);
}

/** Posts acknowledged signals again: each must get its id. */
export async function expectSameIds(
  url: string,
  key: string,
  results: readonly LoadResult[],
): Promise<void> {
  for (const { clientId, id } of results) {
    const { status, body } = await post(url, key, { client_signal_id: clientId });
    expect({ status, body }).toEqual({ status: 200, body: { id, deduped: true } });
  }
}

/** The memory of a process that is in RAM now (`VmRSS`), or was at most (`VmHWM`). */
export function memoryMib(pid: number, field: "VmRSS" | "VmHWM" = "VmRSS"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  // A process that has ended has none.
  return Math.round(
    Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0) / 1_024,
  );
}

export interface Started {
  readonly takesSignals: boolean;
  /** If it does not. */
  readonly result: { readonly code: number; readonly stderr: string } | null;
  readonly end: () => Promise<unknown>;
}

/** Starts a server. Resolves when it takes signals or has ended. */
export async function tryStart(dataDir: string, program = signalbox): Promise<Started> {
  const child = spawn(["serve", "--data", dataDir, "--listen", "127.0.0.1:0"], { program });
  const end = (): Promise<unknown> => {
    child.kill("SIGKILL");
    return child.exited;
  };
  let stderr = "";
  for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
    stderr += text;
    if (stderr.includes("takes signals at")) return { takesSignals: true, result: null, end };
  }
  const result = { code: await child.exited, stderr: asShown(stderr) };
  return { takesSignals: false, result, end };
}

export async function stop(server: ServeProcess): Promise<void> {
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
}

export async function kill(server: ServeProcess): Promise<void> {
  server.kill("SIGKILL");
  expect(await server.exited).toBe("SIGKILL");
}

export function acknowledgedIn(results: readonly LoadResult[]): LoadResult[] {
  return results.filter(({ outcome }) => outcome === 201 || outcome === 200);
}

/**
 * Checks that the database kept the promise: each signal that was answered with 201 or 200 is stored
 * once under the id of its answer, ids rise in the order of storage, and SQLite finds no damage.
 * Returns how many answers it checked.
 */
export function expectKept(dataDir: string, results: readonly LoadResult[]): number {
  expect(query(dataDir, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  const rows = query<{ id: string; clientId: string }>(
    dataDir,
    "SELECT id, client_signal_id AS clientId FROM signals ORDER BY seq",
  );
  const stored = new Map(rows.map(({ id, clientId }) => [clientId, id]));
  expect(stored.size, "client_signal_ids, each stored once").toBe(rows.length);
  const acknowledged = acknowledgedIn(results);
  const lost = acknowledged.filter(({ clientId, id }) => stored.get(clientId) !== id);
  expect(lost.length, "acknowledged signals that are missing").toBe(0);
  const ids = rows.map(({ id }) => id);
  expect(ids, "ids in the order of storage").toEqual(ids.toSorted());
  return acknowledged.length;
}
