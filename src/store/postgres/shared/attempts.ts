/** Attempts in a table. Each change is one statement of one row, so that none waits for another in a circle. */
import type { Attempts, Count } from "../../../domain/storage/shared/attempts.ts";
import type { Sql } from "../../records/sql.ts";
import { endedIn, NOW } from "./notes.ts";

const COUNT = `times, ends_at - ${NOW} AS "leftMs"`;
const HAS_ENDED = `(attempts.times = 0 OR attempts.ends_at <= ${NOW})`;

const ADD = `WITH ended AS (DELETE FROM attempts WHERE name IN ${endedIn("attempts", "$1")})
  INSERT INTO attempts (name, times, ends_at) VALUES ($1, 1, ${NOW} + $2::bigint)
  ON CONFLICT (name) DO UPDATE SET
    times = CASE WHEN ${HAS_ENDED} THEN 1 ELSE attempts.times + 1 END,
    ends_at = CASE WHEN ${HAS_ENDED} THEN excluded.ends_at ELSE attempts.ends_at END
  RETURNING ${COUNT}`;

export function attemptsIn(sql: Sql): Attempts {
  return {
    async add(name, windowMs) {
      const count = await sql.get<Count>(ADD, name, windowMs);
      if (count === null) throw new Error("an attempt was not counted");
      return count;
    },

    find: (name) =>
      sql.get<Count>(
        `SELECT ${COUNT} FROM attempts WHERE name = $1 AND times > 0 AND ends_at > ${NOW}`,
        name,
      ),

    async takeBack(name) {
      await sql.get("UPDATE attempts SET times = times - 1 WHERE name = $1 AND times > 0", name);
    },
  };
}
