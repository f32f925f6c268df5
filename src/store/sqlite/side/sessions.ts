/** Sessions have a database file of their own, so that no backup has them, and a restore can end them all. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { SessionStore } from "../../../domain/storage/sessions.ts";
import { loadDeviceSecret, makeDeviceSecret, sessions } from "../../records/sessions.ts";
import { describeFailure, isTransient } from "../files/failures.ts";
import { SideFile } from "../files/side-file.ts";
import sessionsSql from "./sessions.sql" with { type: "text" };

export const SESSIONS_NAME = "signalbox-sessions.db";

/** Raise it with each change of `sessions.sql`. */
const VERSION = 2;

interface SessionsFile extends Disposable {
  readonly sessions: SessionStore;
  readonly deviceSecret: Uint8Array;
}

/** Never throws, and warns with `onWarning`, like {@link SideFile}. */
export async function openSessions(
  dataDir: string,
  onWarning: (sentence: string) => void,
): Promise<SessionsFile> {
  const file = new SideFile({
    path: join(dataDir, SESSIONS_NAME),
    content: "the sessions of the console, and which browsers are known",
    sql: sessionsSql,
    version: VERSION,
    synchronous: "FULL",
    onWarning,
  });
  const port = file.port();
  return {
    sessions: sessions(port, isTransient),
    deviceSecret: await loadDeviceSecret(port).catch((error: unknown) => {
      onWarning(
        `${file.path} cannot be written (${describeFailure(error)}): after a restart, wrong passwords from a stranger can lock members out for 15 minutes`,
      );
      return makeDeviceSecret();
    }),
    [Symbol.dispose]: () => file.close(),
  };
}

/** For a restore: the restored database does not know which sessions were ended. The server must be stopped. */
export function removeSessions(dataDir: string): void {
  for (const end of ["", "-wal", "-shm"])
    rmSync(join(dataDir, SESSIONS_NAME + end), { force: true });
}
