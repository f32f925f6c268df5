/** Which PostgreSQL databases are used, and what is said of the others. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { everySignal } from "../../../src/domain/signal/stored-signal.ts";
import { ADMIN } from "../../../src/domain/storage/author.ts";
import { inspectStorage, withStorage } from "../../../src/store/open.ts";
import { explain, isTransient } from "../../../src/store/postgres/failures.ts";
import { startAnother } from "../../kit/postgresql.ts";
import { temporaryFolder } from "../../kit/setup.ts";
import { failure } from "../../storage/start.ts";
import { createDatabase, postgresTest, query, runIn, startServers } from "./_servers.ts";

const create = { create: true };
const desks = (url: string, options = create) =>
  withStorage(url, ({ registry }) => registry.listDesks(), options);

const refusal = async (url: string, options = create): Promise<string> =>
  String(await failure(desks(url, options))).replaceAll(/(?:127\.0\.0\.1|localhost):\d+/g, "HOST");

postgresTest("an empty database gets its tables, from several at once, too", async () => {
  const url = await createDatabase();
  expect(await refusal(url, { create: false })).toBe(
    "Error: The database of HOST is empty: create a desk",
  );
  expect(await Promise.all(Array.from({ length: 5 }, () => desks(url)))).toEqual(
    Array.from({ length: 5 }, () => []),
  );
  expect(await desks(url, { create: false })).toEqual([]);
});

postgresTest("a database of another program is left as it is", async () => {
  const url = await createDatabase();
  await runIn(url, "CREATE TABLE orders (id integer)");
  expect(await refusal(url)).toBe(
    "Error: The database of HOST has tables of another program, and was left as it is: create one for Signalbox, with createdb, and name that.",
  );
});

postgresTest("a database of a newer version is refused", async () => {
  const url = await createDatabase();
  await desks(url);
  await runIn(url, "UPDATE signalbox SET version = 2");
  expect(await refusal(url)).toBe(
    "Error: The database of HOST has version 2, and this signalbox knows 1: use a newer signalbox.",
  );
});

postgresTest("a database with another encoding is refused", async () => {
  const url = await createDatabase();
  const name = `${new URL(url).pathname.slice(1)}_latin`;
  await query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
  expect(await refusal(`${new URL("/", url).href}${name}`)).toMatch(
    /has the encoding LATIN1: create one with UTF-8: createdb/,
  );
});

postgresTest("without the rights, the user or the database, the sentence says which", async () => {
  const url = new URL(await createDatabase());
  await query("CREATE ROLE guest LOGIN");
  await runIn(url.href, "REVOKE ALL ON SCHEMA public FROM PUBLIC");
  const as = (username: string, path = url.pathname): string =>
    Object.assign(new URL(url), { username, pathname: path }).href;
  expect(await refusal(as("guest"))).toMatch(
    /may not make or use the tables of HOST \(no CREATE on a schema\): .* ALTER DATABASE NAME OWNER TO USER$/,
  );
  expect(await refusal(as("nobody"))).toMatch(
    /HOST refuses the user or password of --store \(28000: /,
  );
  expect(await refusal(as("tester", "/none"))).toMatch(
    /no such database on HOST \(3D000: .*createdb/,
  );
});

postgresTest("a server is not started, nor checked as valid, that could not write", async () => {
  const url = new URL(await createDatabase());
  await query("CREATE ROLE reader LOGIN");
  const reader = Object.assign(new URL(url), { username: "reader" }).href;
  const check = async () =>
    String(await failure(() => inspectStorage(reader, () => null, { forServer: true })));
  await runIn(url.href, "REVOKE CREATE ON SCHEMA public FROM PUBLIC");
  expect(await check()).toMatch(/may not make or use the tables of .* \(no CREATE on a schema\)/);
  await desks(url.href);
  await runIn(url.href, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader");
  const sentence =
    /may not make or use the tables of .* \(no \w+ on \w+\): as the owner .* GRANT ALL/;
  expect(await check()).toMatch(sentence);
  expect(await refusal(reader)).toMatch(sentence);
  // Commands that only read need no more.
  expect(await desks(reader, { create: false })).toEqual([]);
  const refused = failure(() =>
    withStorage(reader, ({ registry }) => registry.createDesk("alpha", { ifMissing: false })),
  );
  expect(String(await refused)).toMatch(/may not make or use the tables of .* \(42501: /);
});

postgresTest("tables that the user's search_path does not reach are named", async () => {
  const url = await createDatabase();
  await desks(url);
  await runIn(url, "ALTER SCHEMA public RENAME TO own; CREATE SCHEMA public");
  expect(await refusal(url)).toBe(
    "Error: The tables of HOST are in the schema own, where the user of --store does not look: add it to the user's search_path, with ALTER ROLE, or grant USAGE on it.",
  );
});

const unusual = [
  "statement_timeout = '1ms'",
  "lock_timeout = '1ms'",
  "default_transaction_isolation = 'serializable'",
  "default_transaction_read_only = on",
  "bytea_output = 'escape'",
  "extra_float_digits = -15",
  "synchronous_commit = off",
];

postgresTest("what is set for the database or the role changes nothing", async () => {
  const { one, signals, submit, registry } = await startServers(1, async (url) => {
    const name = new URL(url).pathname.slice(1);
    for (const setting of unusual) await query(`ALTER DATABASE ${name} SET ${setting}`);
    return url;
  });
  const price = 0.1 + 0.2;
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) => one.append(submit(String(index % 25), { price }))),
  );
  expect(answers.filter(({ deduped }) => deduped)).toHaveLength(25);
  const everything = { deskId: null, filter: everySignal, order: "oldest", limit: 100 } as const;
  const stored = (await signals.list(everything)).signals;
  expect(stored.map((signal) => signal.price)).toEqual(Array.from({ length: 25 }, () => price));
  const { key } = await registry.mintKey(
    { scope: "send", desk: "alpha", label: null, expiresInMs: null },
    ADMIN,
  );
  expect(await one.findOwner(key)).toMatchObject({ deskName: "alpha" });
});

postgresTest("of two hosts that are both primaries none is used", async () => {
  const one = await createDatabase();
  const another = await startAnother();
  const { host } = new URL((await another?.createDatabase()) ?? "");
  await another?.query(`CREATE DATABASE again_${new URL(one).pathname.slice(1)}`);
  await query(`CREATE DATABASE again_${new URL(one).pathname.slice(1)}`);
  const both = (second: string): string => one.replace("/test_", `,${second}/again_test_`);
  expect(await refusal(both(host))).toContain("two of the hosts are primaries");
  // A running server answers 503, and not 500.
  const error = await failure(runIn(both(host), "SELECT 1"));
  expect({ isTransient: isTransient(error), reason: explain(error) }).toEqual({
    isTransient: true,
    reason: "two of the hosts are primaries: fence or stop the one that is not",
  });
  // Two names of one server.
  expect(await desks(both(new URL(one).host.replace("127.0.0.1", "localhost")))).toEqual([]);
});

postgresTest("a server whose commits are not on disk is refused", async () => {
  const url = await createDatabase();
  for (const setting of ["fsync", "full_page_writes"]) {
    await query(`ALTER SYSTEM SET ${setting} = off`);
    await query("SELECT pg_reload_conf()");
    try {
      await Bun.sleep(200);
      expect(await refusal(url)).toContain(
        `runs with ${setting} = off, so a power cut would lose acknowledged signals: turn it on: ALTER SYSTEM SET ${setting} = on`,
      );
    } finally {
      await query(`ALTER SYSTEM RESET ${setting}`);
      await query("SELECT pg_reload_conf()");
    }
  }
});

test("a server that does not answer is named, without the password", async () => {
  const url = "postgres://desk:secret@127.0.0.1:1/signalbox";
  expect(await refusal(url)).toMatch(
    /^Error: The database of HOST does not answer \(ECONNREFUSED.*start it, or check the address in --store\.$/,
  );
  expect(await refusal(url)).not.toContain("secret");
  expect(await refusal("postgres://desk@[::1]:1/signalbox")).toMatch(/does not answer \(E[A-Z]+: /);
});

test("a certificate file that cannot be read or is no certificate is named", async () => {
  const file = join(temporaryFolder(), "ca.pem");
  const url = `postgres://db.invalid/d?sslrootcert=${file}`;
  const sentence = (problem: string) =>
    `Error: The file ${file} of sslrootcert in --store ${problem}: correct its path or its permissions.`;
  expect(await refusal(url)).toBe(sentence("cannot be read (ENOENT)"));
  await Bun.write(file, "no certificate");
  expect(await refusal(url)).toBe(sentence("is no PEM certificate"));
});
