/** Notes in a table. Each change is one statement, which waits for no other change. */
import type { SharedNotes } from "../../../domain/storage/shared/notes.ts";
import type { Sql } from "../../records/sql.ts";

/** The database's clock, because those of the servers differ. */
export const NOW = "(extract(epoch FROM now()) * 1000)::bigint";

/** The names of rows that have ended, but for one and those that another server works on. */
export function endedIn(table: string, except: string): string {
  return `(SELECT name FROM ${table} WHERE ends_at <= ${NOW} AND name <> ${except} FOR UPDATE SKIP LOCKED)`;
}

const WRITE = `WITH ended AS (DELETE FROM notes WHERE name IN ${endedIn("notes", "$1")})
  INSERT INTO notes (name, text, ends_at) VALUES ($1, $2, ${NOW} + $3::bigint)
  ON CONFLICT (name) DO UPDATE SET text = excluded.text, ends_at = excluded.ends_at`;

export function notesIn(sql: Sql): SharedNotes {
  const write = async (name: string, text: string, lifetimeMs: number | null): Promise<void> => {
    await sql.get(WRITE, name, text, lifetimeMs);
  };
  return {
    set: write,
    keep: (name, text) => write(name, text, null),

    async renew(name, text, lifetimeMs) {
      const renewed = await sql.get(
        `UPDATE notes SET ends_at = ${NOW} + $3::bigint
         WHERE name = $1 AND text = $2 AND ends_at > ${NOW} RETURNING name`,
        name,
        text,
        lifetimeMs,
      );
      return renewed !== null;
    },

    async add(name, text, lifetimeMs) {
      const added = `${WRITE} WHERE notes.ends_at <= ${NOW} RETURNING name`;
      return (await sql.get(added, name, text, lifetimeMs)) !== null;
    },

    async get(name) {
      const note = await sql.get<{ text: string }>(
        `SELECT text FROM notes WHERE name = $1 AND coalesce(ends_at > ${NOW}, true)`,
        name,
      );
      return note?.text ?? null;
    },

    async take(name) {
      const note = await sql.get<{ text: string; holds: boolean }>(
        `DELETE FROM notes WHERE name = $1 RETURNING text, coalesce(ends_at > ${NOW}, true) AS holds`,
        name,
      );
      return note?.holds === true ? note.text : null;
    },

    async delete(name) {
      await sql.get("DELETE FROM notes WHERE name = $1", name);
    },

    async startingWith(prefix) {
      const found = await sql.all<{ name: string; text: string }>(
        `SELECT name, text FROM notes
         WHERE name >= $1 AND name < $2 AND coalesce(ends_at > ${NOW}, true)`,
        prefix,
        // The last character of ASCII.
        `${prefix}\u007f`,
      );
      return new Map(found.map(({ name, text }) => [name, text]));
    },
  };
}
