/** The server under attack: a process of its own, so that its log and its memory are its own. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../../src/store/sqlite/open.ts";
import { SqliteRegistry } from "../../src/store/sqlite/registry.ts";
import { type ServeProcess, startServe } from "../_cli.ts";
import { mintKey, temporaryFolder } from "../_setup.ts";

export interface Owner {
  readonly desk: string;
  readonly key: string;
  readonly keyId: string;
}

export interface Target {
  readonly process: ServeProcess;
  readonly port: number;
  readonly dataDir: string;
  /** Two desks, each with a key that works. */
  readonly alpha: Owner;
  readonly beta: Owner;
  /** Of desk alpha, and works no more. */
  readonly revokedKey: string;
}

/** Well-formed, and nobody's; it comes to be in places where a key has no business. */
export const unknownKey = `sbk_${"5c0ffee5".repeat(8)}`;

export async function startTarget(): Promise<Target> {
  const dataDir = join(temporaryFolder(), "data");
  const { alpha, beta, revokedKey } = makeKeys(dataDir);
  const server = await startServe(["--rate-limit", "0", "--log-level", "debug"], { dataDir });
  const port = Number(new URL(server.url).port);
  return { process: server, port, dataDir, alpha, beta, revokedKey };
}

function makeKeys(dataDir: string) {
  const db = openDatabase(dataDir, "command");
  try {
    const registry = new SqliteRegistry(db);
    const owner = (desk: string): Owner => ({ desk, ...mintKey(registry, desk) });
    const revoked = mintKey(registry, "alpha");
    registry.revokeKey(revoked.keyId);
    return { alpha: owner("alpha"), beta: owner("beta"), revokedKey: revoked.key };
  } finally {
    db.close();
  }
}

/** What its operators see of its health: the readiness's status, and the text of both checks. */
export async function healthOf({ dataDir }: Target): Promise<{ status: number; text: string }> {
  const unix = join(dataDir, "ops.sock");
  const live = await fetch("http://localhost/healthz", { unix });
  const ready = await fetch("http://localhost/readyz", { unix });
  return { status: ready.status, text: `${await live.text()}\n${await ready.text()}` };
}

/** Memory in use, in MiB. */
export function residentMib({ process: { pid } }: Target): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}
