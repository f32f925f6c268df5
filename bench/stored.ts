/** Databases with many stored signals, one per kind of ids; filled once and kept for later runs. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { IdKind } from "./load.ts";
import { run } from "./process.ts";
import { note } from "./tools.ts";

/** Filling takes about 10 µs per signal. */
export const FILL_MS_MAX = 4 * 3_600_000;

const schemaFile = join(import.meta.dir, "..", "schema.sql");

export interface Stored {
  readonly signals: number;
  /** Of the database. Each cell adds its signals to it. */
  readonly dataDir: string;
  readonly key: string;
  /** On disk, after filling. */
  readonly bytes_per_signal: number;
}

export type StoredByKind = Readonly<Partial<Record<IdKind, Stored>>>;

/** Takes the databases from `keepFolder`; fills those that are not there yet. */
export async function readyStored(
  signals: number,
  kinds: readonly IdKind[],
  keepFolder: string,
): Promise<StoredByKind> {
  const stored: Partial<Record<IdKind, Stored>> = {};
  for (const kind of kinds) stored[kind] = await readyOne(signals, kind, keepFolder);
  return stored;
}

async function readyOne(signals: number, kind: IdKind, keepFolder: string): Promise<Stored> {
  // A database of another schema may be in the same folder.
  const schema = Bun.hash(readFileSync(schemaFile)).toString(16);
  const dataDir = join(keepFolder, `${signals}-${kind}-${schema}`);
  if (!existsSync(dataDir)) await fill(dataDir, signals, kind);
  const bytes = Number(readFileSync(`${dataDir}.bytes`, "utf8"));
  const key = readFileSync(`${dataDir}.key`, "utf8");
  return { signals, dataDir, key, bytes_per_signal: bytes / signals };
}

/** What is measured next must not share the disk with the system writing gigabytes back. */
export async function writeBack(): Promise<void> {
  await run(["sync"], { msMax: FILL_MS_MAX });
}

async function fill(dataDir: string, signals: number, kind: IdKind): Promise<void> {
  note(`filling ${dataDir} with ${signals.toLocaleString("en-US")} signals`);
  const partial = `${dataDir}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { mode: 0o700 });
  const program = join(import.meta.dir, "fill.ts");
  await run([process.execPath, program, partial, String(signals), kind], { msMax: FILL_MS_MAX });
  await writeBack();
  await Bun.write(`${dataDir}.bytes`, String(statSync(join(partial, "signalbox.db")).size));
  renameSync(`${partial}.key`, `${dataDir}.key`);
  renameSync(partial, dataDir);
}
