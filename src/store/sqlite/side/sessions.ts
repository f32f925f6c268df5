/**
 * Sessions have a database file of their own, so that no backup has them, and a restore can end them all. A
 * change is on disk when its method returns: a session that was ended never comes back.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Session } from "../../../domain/member/session.ts";
import type { SessionStore } from "../../../domain/storage/sessions.ts";
import { isTransient } from "../files/failures.ts";
import sessionsSql from "./sessions.sql" with { type: "text" };
import { SideFile } from "../files/side-file.ts";
import { inTransaction } from "../files/transaction.ts";

export const SESSIONS_NAME = "signalbox-sessions.db";

/** Raise it with each change of `sessions.sql`. */
const VERSION = 1;

const COLUMNS = `id, member_id AS memberId, signed_out_at AS signedOutAt, passkey_id AS passkeyId,
  browser, address, started_at AS startedAt, seen_at AS seenAt`;
const LATEST_FIRST = "ORDER BY seen_at DESC, started_at DESC";

export class SqliteSessions implements SessionStore {
  readonly #file: SideFile;

  /** Never throws, and warns with `onWarning`, like {@link SideFile}. */
  constructor(dataDir: string, onWarning: (sentence: string) => void) {
    this.#file = new SideFile({
      path: join(dataDir, SESSIONS_NAME),
      content: "the sessions of the console",
      sql: sessionsSql,
      version: VERSION,
      synchronous: "FULL",
      onWarning,
    });
  }

  close(): void {
    this.#file.close();
  }

  add(session: Session, perMemberMax: number): void {
    this.#file.use((db) =>
      inTransaction(db, () => {
        db.query(
          `DELETE FROM sessions WHERE id IN
             (SELECT id FROM sessions WHERE member_id = ? ${LATEST_FIRST} LIMIT -1 OFFSET ?)`,
        ).run(session.memberId, perMemberMax - 1);
        db.query(
          `INSERT INTO sessions (id, member_id, signed_out_at, passkey_id, browser, address, started_at, seen_at)
           VALUES ($id, $memberId, $signedOutAt, $passkeyId, $browser, $address, $startedAt, $seenAt)`,
        ).run({ ...session });
      }),
    );
  }

  find(id: string): Session | null {
    return this.#file.use((db) =>
      db.query<Session, [string]>(`SELECT ${COLUMNS} FROM sessions WHERE id = ?`).get(id),
    );
  }

  list(memberId: string): Session[] {
    return this.#file.use((db) =>
      db
        .query<Session, [string]>(
          `SELECT ${COLUMNS} FROM sessions WHERE member_id = ? ${LATEST_FIRST}`,
        )
        .all(memberId),
    );
  }

  recordUse(id: string, at: number): void {
    unlessTransient(() =>
      this.#file.use((db) => db.query("UPDATE sessions SET seen_at = ? WHERE id = ?").run(at, id)),
    );
  }

  discard(id: string): void {
    unlessTransient(() => this.remove(id));
  }

  remove(id: string): boolean {
    return (
      this.#file.use((db) => db.query("DELETE FROM sessions WHERE id = ?").run(id)).changes > 0
    );
  }

  removeUnused(now: number, idleMsMax: number): void {
    this.#file.use((db) =>
      db.query("DELETE FROM sessions WHERE abs(seen_at - ?) > ?").run(now, idleMsMax),
    );
  }
}

function unlessTransient(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!isTransient(error)) throw error;
  }
}

/** For a restore: the restored database does not know which sessions were ended. The server must be stopped. */
export function removeSessions(dataDir: string): void {
  for (const end of ["", "-wal", "-shm"])
    rmSync(join(dataDir, SESSIONS_NAME + end), { force: true });
}
