/** The console's sessions. A change is on disk when its method returns: a session that was ended never comes back. */
import type { Session } from "../../domain/member/session.ts";
import type { SessionStore } from "../../domain/storage/sessions.ts";
import type { Sql } from "./sql.ts";

const COLUMNS = `id, member_id AS "memberId", signed_out_at AS "signedOutAt", passkey_id AS "passkeyId",
  browser, address, started_at AS "startedAt", seen_at AS "seenAt"`;
const LATEST_FIRST = "ORDER BY seen_at DESC, started_at DESC";

export function makeDeviceSecret(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(32));
}

/** Makes the secret if there is none. With it, anybody could forge device cookies: it is in no backup. */
export async function loadDeviceSecret(sql: Sql): Promise<Uint8Array> {
  const find = "SELECT secret FROM device_secret";
  const kept = await sql.get<{ secret: Uint8Array }>(find);
  if (kept !== null) return kept.secret;
  const secret = makeDeviceSecret();
  return sql.transaction(async (tx) => {
    await tx.run(
      "INSERT INTO device_secret (one, secret) VALUES (1, $1) ON CONFLICT (one) DO NOTHING",
      secret,
    );
    return (await tx.get<{ secret: Uint8Array }>(find))?.secret ?? secret;
  });
}

/** `isTransient`: whether an error is about the disk or a lock, and not a defect. */
export function sessions(sql: Sql, isTransient: (error: unknown) => boolean) {
  const unlessTransient = async (work: Promise<unknown>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      if (!isTransient(error)) throw error;
    }
  };

  const remove = (id: string): Promise<boolean> =>
    sql.transaction(async (tx) => (await tx.run("DELETE FROM sessions WHERE id = $1", id)) > 0);

  return {
    add: (session, perMemberMax) =>
      sql.transaction(async (tx) => {
        await tx.run(
          `DELETE FROM sessions WHERE member_id = $1 AND id NOT IN
             (SELECT id FROM sessions WHERE member_id = $1 ${LATEST_FIRST} LIMIT $2)`,
          session.memberId,
          perMemberMax - 1,
        );
        await tx.run(
          `INSERT INTO sessions (id, member_id, signed_out_at, passkey_id, browser, address, started_at, seen_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
          session.id,
          session.memberId,
          session.signedOutAt,
          session.passkeyId,
          session.browser,
          session.address,
          session.startedAt,
          session.seenAt,
        );
      }),

    find: (id) => sql.get<Session>(`SELECT ${COLUMNS} FROM sessions WHERE id = $1`, id),

    list: (memberId) =>
      sql.all<Session>(
        `SELECT ${COLUMNS} FROM sessions WHERE member_id = $1 ${LATEST_FIRST}`,
        memberId,
      ),

    recordUse: (id, at) =>
      unlessTransient(
        sql.transaction((tx) => tx.run("UPDATE sessions SET seen_at = $1 WHERE id = $2", at, id)),
      ),

    remove,

    discard: (id) => unlessTransient(remove(id)),

    removeUnused: (now, idleMsMax) =>
      sql.transaction(async (tx) => {
        await tx.run("DELETE FROM sessions WHERE abs(seen_at - $1) > $2", now, idleMsMax);
      }),
  } satisfies SessionStore;
}
