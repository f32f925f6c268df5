/** SQLite behind the port of the records. */
import { expect, test } from "bun:test";
import { sqliteSql } from "../../src/store/sqlite/sql.ts";
import { openForDamage, rejection, temporaryFolder } from "../kit/setup.ts";

function start() {
  const dataDir = temporaryFolder();
  const reader = openForDamage(dataDir);
  const open = () => sqliteSql({ reader, writer: openForDamage(dataDir) });
  const sql = open();
  const names = async () =>
    (await sql.all<{ name: string }>("SELECT name FROM desks ORDER BY id")).map(({ name }) => name);
  return { sql, names, open };
}

const insert = "INSERT INTO desks (uid, name, created_at) VALUES ($1, $2, 0)";

test("parameters are numbered, in whatever order and however often a statement has them", async () => {
  const { sql } = start();
  const read = "SELECT $3 AS three, $1 AS one, $2 AS two, $1 AS again";
  expect(await sql.get(read, 1, "two", null)).toEqual({
    three: null,
    one: 1,
    two: "two",
    again: 1,
  });
});

test("a transaction that fails changes nothing, and the next one works", async () => {
  const { sql, names } = start();
  const failing = sql.transaction(async (tx) => {
    await tx.run(insert, "a", "alpha");
    throw new Error("no");
  });
  expect(String(await rejection(failing))).toContain("no");
  expect(await sql.transaction((tx) => tx.run(insert, "b", "beta"))).toBe(1);
  expect(await names()).toEqual(["beta"]);
});

test("transactions wait for each other, and reads see only what was committed", async () => {
  const { names, open } = start();
  const seen: string[][] = [];
  // Each with a connection of its own.
  const add = (name: string) =>
    open().transaction(async (tx) => {
      const [count] = await tx.all<{ n: number }>("SELECT count(*) AS n FROM desks");
      await tx.run(insert, name, name);
      seen.push(await names());
      return count?.n;
    });
  expect(await Promise.all([add("alpha"), add("beta"), add("gamma")])).toEqual([0, 1, 2]);
  expect(seen).toEqual([[], ["alpha"], ["alpha", "beta"]]);
});
