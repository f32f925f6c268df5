/** A database that is not new: with so many signals in it, made once and kept for later runs. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { run } from "./process.ts";
import { note } from "./tools.ts";

/** Filling takes some 10 µs a signal. */
const FILL_MS_MAX = 4 * 3_600_000;

const projectFolder = join(import.meta.dir, "..");

export interface Stored {
  readonly signals: number;
  /** Of the database. Rounds add their signals to it. */
  readonly dataDir: string;
  readonly key: string;
  /** On disk, of each signal, as it was filled. */
  readonly bytes_per_signal: number;
}

/** From `keepFolder` where it is there; its name tells of the code that made it, which may change. */
export async function readyStored(signals: number, keepFolder: string): Promise<Stored> {
  const dataDir = join(keepFolder, `${signals}-${await versionOfFormat()}`);
  if (!existsSync(dataDir)) await fill(dataDir, signals);
  const meta = JSON.parse(readFileSync(`${dataDir}.json`, "utf8")) as { bytes: number };
  const key = readFileSync(`${dataDir}.key`, "utf8");
  return { signals, dataDir, key, bytes_per_signal: meta.bytes / signals };
}

async function fill(dataDir: string, signals: number): Promise<void> {
  note(`filling ${dataDir} with ${signals.toLocaleString("en-US")} signals`);
  const partial = `${dataDir}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { recursive: true, mode: 0o700 });
  const command = [process.execPath, join(import.meta.dir, "fill.ts"), partial, String(signals)];
  await run(command, { msMax: FILL_MS_MAX });
  const { size: bytes } = statSync(join(partial, "signalbox.db"));
  await Bun.write(`${dataDir}.json`, JSON.stringify({ signals, bytes }));
  renameSync(`${partial}.key`, `${dataDir}.key`);
  renameSync(partial, dataDir);
}

/** Changes with what a database looks like inside. */
async function versionOfFormat(): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  hash.update(readFileSync(join(projectFolder, "schema.sql")));
  return hash.digest("hex").slice(0, 8);
}
