/** Connections that the database ends while they are at work. */
import { expect } from "bun:test";
import { Pool } from "../../../src/store/postgres/pool.ts";
import { postgresSql } from "../../../src/store/postgres/sql.ts";
import { createDatabase, postgresTest, query } from "./_servers.ts";

postgresTest(
  "a transaction whose connection is ended between two statements fails alone",
  async () => {
    const pool = new Pool(await createDatabase(), { max: 6 });
    const sql = postgresSql(pool);
    const change = () =>
      sql.transaction(async (tx) => {
        const own = await tx.get<{ pid: number }>("SELECT pg_backend_pid() AS pid");
        await query(`SELECT pg_terminate_backend(${own?.pid ?? 0})`);
        await Bun.sleep(Math.random() * 4);
        await tx.run("SELECT 1");
      });
    for (let index = 0; index < 30; index += 1) {
      const [outcome] = await Promise.allSettled([change()]);
      expect(outcome).toMatchObject({ status: "rejected" });
    }
    expect(await sql.get("SELECT 1 AS one")).toEqual({ one: 1 });
    await pool.close();
  },
);
