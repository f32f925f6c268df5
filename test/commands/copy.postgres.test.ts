/** `signalbox copy` between a data folder and PostgreSQL, and `signalbox verify --store`. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import postgres from "postgres";
import {
  cli,
  cliHere,
  commandsOn,
  expectRefusal,
  expectUsageError,
  spawn,
  startServe,
} from "../kit/cli.ts";
import { testServer } from "../kit/postgresql.ts";
import { signal, temporaryFolder } from "../kit/setup.ts";
import { editSignals, seed, type Seeded, seededId, seededUlid } from "../store/_databases.ts";

const server = await testServer();
const SIGNALS = 5_000;
const TABLES = ["desks", "api_keys", "members", "invitations", "passkeys", "audit", "signals"];

/** A folder with something in each table. */
async function seedAll(signals = SIGNALS): Promise<Seeded> {
  const seeded = await seed({ signals });
  const { run, json } = commandsOn(seeded.dataDir);
  await run("desk", "create", "beta.desk");
  await run("key", "mint", "--read", "--allow-from", "10.0.0.0/8");
  await run("key", "mint", "--desk", "beta.desk", "--label", "é 😀");
  await run("key", "rotate", seeded.keyId, "--overlap", "24h");
  await run("member", "invite", "alpha", "ada@example.com");
  await run("desk", "archive", "beta.desk");
  const [member] = await json<{ id: string }[]>("member", "list", "alpha");
  editSignals(
    seeded.path,
    [
      "INSERT INTO passkeys VALUES ('credential', ?, 'phone', x'00ff10', 3, '[]', 5, NULL, NULL)",
      member?.id ?? "",
    ],
    `UPDATE signals SET price = 0.1 + 0.2, quantity = 5e-324, symbol = 'é😀"\\', metadata = '{ "a":"\\u0000" }',
       signal_time = 9007199254740991, direction = 'short' WHERE seq = 7`,
  );
  return seeded;
}

function newDatabase(): Promise<string> {
  if (server === null) throw new Error("there is no server");
  return server.createDatabase();
}

async function sql<Row extends object>(url: string, text: string): Promise<Row[]> {
  const pg = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return [...(await pg.unsafe<Row[]>(text))];
  } finally {
    await pg.end();
  }
}

async function copy(from: string, to: string): Promise<void> {
  const result = await cli(["copy", "--from", from, "--to", to]);
  expect(result).toMatchObject({ code: 0, stdout: "" });
}

function contentOf(dataDir: string): Record<string, unknown[]> {
  using db = new Database(join(dataDir, "signalbox.db"), { readonly: true });
  return Object.fromEntries(
    TABLES.map((table) => [table, db.query(`SELECT * FROM ${table} ORDER BY 1`).values()]),
  );
}

/** How many signals a copy has brought into a folder. */
async function signalsIn(dataDir: string): Promise<number> {
  try {
    using db = new Database(join(dataDir, "signalbox.db.copying"), { readonly: true });
    const row = db.query<{ count: number }, []>("SELECT count(*) AS count FROM signals").get();
    return row?.count ?? 0;
  } catch {
    return 0;
  }
}

async function refused(from: string, to: string, says: string): Promise<void> {
  const result = await cli(["copy", "--from", from, "--to", to]);
  expect(result).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining(says) });
}

/** The database's name in its URL. */
function nameOf(url: string): string {
  return url.split("/").at(-1) ?? "";
}

/** Starts a copy, and ends it as soon as so many signals are in its target. */
async function killCopy(
  from: string,
  to: string,
  count: () => Promise<number>,
  signals: number,
): Promise<void> {
  const child = spawn(["copy", "--from", from, "--to", to], {});
  while ((await count()) < signals && child.exitCode === null) await Bun.sleep(1);
  child.kill("SIGKILL");
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
}

describe.skipIf(server === null)("copy", () => {
  test("to PostgreSQL and back keeps every row of every table", async () => {
    const { dataDir } = await seedAll();
    const url = await newDatabase();
    await copy(dataDir, url);
    expect(await cliHere(["verify", "--store", url])).toMatchObject({ code: 0, stderr: "" });
    const back = join(temporaryFolder(), "back");
    await copy(url, back);
    expect(contentOf(back)).toEqual(contentOf(dataDir));
    expect(await cliHere(["verify", "--data", back])).toMatchObject({ code: 0, stderr: "" });
  });

  test("a repeated signal is recognized after it, and the next id and seq are higher", async () => {
    const { dataDir, key } = await seedAll(100);
    const url = await newDatabase();
    await copy(dataDir, url);
    const serving = await startServe(["--store", url]);
    const post = async (body: object) => {
      const response = await fetch(`${serving.url}/v1/signals`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ ...signal, ...body }),
      });
      return [response.status, ((await response.json()) as { id: string }).id] as const;
    };
    expect(await post({ client_signal_id: seededId(8) })).toEqual([200, seededUlid(8)]);
    const [status, id] = await post({ client_signal_id: "after the move" });
    expect(status).toBe(201);
    expect(id > seededUlid(100)).toBe(true);
    const rows = await sql<{ id: string }>(url, "SELECT id FROM signals WHERE seq > 100");
    expect(rows).toEqual([{ id }]);

    serving.kill("SIGTERM");
    await serving.exited;
    const back = join(temporaryFolder(), "back");
    await copy(url, back);
    // The duplicate left a gap in PostgreSQL, which SQLite does not have.
    const seqs = (contentOf(back)["signals"] as [number][]).map(([seq]) => seq);
    expect(seqs).toEqual(Array.from({ length: 101 }, (_, index) => index + 1));
  });

  test("an id that is ahead of the clock is followed by a higher one", async () => {
    const { dataDir, path, keyId } = await seed({ signals: 1 });
    const ahead = "7ZZZZZZZZXZZZZZZZZZZZZZZZZ";
    editSignals(path, [
      `INSERT INTO signals (id, desk_id, key_id, received_at, source, type, symbol, side, hash)
       VALUES (?, 1, ?, 1, 'venue_1', 'stock', 'A', 'open', zeroblob(8))`,
      ahead,
      keyId,
    ]);
    const url = await newDatabase();
    await copy(dataDir, url);
    const { stdout } = await cliHere(["key", "mint", "--desk", "alpha", "--store", url]);
    const { url: origin } = await startServe(["--store", url]);
    const response = await fetch(`${origin}/v1/signals`, {
      method: "POST",
      headers: { authorization: `Bearer ${stdout.trim()}`, "content-type": "application/json" },
      body: JSON.stringify(signal),
    });
    expect(((await response.json()) as { id: string }).id > ahead).toBe(true);
  });

  test("killed at any moment, it goes on with what the source has since then", async () => {
    const { dataDir, path } = await seedAll(20_000);
    const url = await newDatabase();
    const count = () =>
      sql<{ count: number }>(url, "SELECT count(*)::integer AS count FROM signals").then(
        ([row]) => row?.count ?? 0,
        () => 0,
      );
    await killCopy(dataDir, url, count, 2_000);
    const copied = await count();
    expect(copied).toBeWithin(2_000, 20_000);
    await expectRefusal(["desk", "list", "--store", url], "is not complete");

    await commandsOn(dataDir).run("desk", "create", "gamma");
    const { id } = await commandsOn(dataDir).json<{ id: string }>("key", "mint", "--desk", "gamma");
    editSignals(path, [
      `INSERT INTO signals (id, desk_id, key_id, received_at, source, type, symbol, side, hash)
       VALUES ('01HF8000000000000000000000', (SELECT id FROM desks WHERE name = 'gamma'), ?, 1, 'venue_1', 'stock', 'A', 'open', zeroblob(8))`,
      id,
    ]);
    await copy(dataDir, url);
    expect(await count()).toBe(20_001);

    const back = join(temporaryFolder(), "back");
    await killCopy(url, back, () => signalsIn(back), 2_000);
    await expectRefusal(["desk", "list", "--data", back], "is not complete");
    await copy(url, back);
    expect(contentOf(back)).toEqual(contentOf(dataDir));
  });

  test("a target that would differ from its source is not opened", async () => {
    const { dataDir } = await seed({ signals: 10 });
    const url = await newDatabase();
    await expectRefusal(["verify", "--store", url], "is empty");
    const making = await startServe(["--store", url]);
    making.kill("SIGTERM");
    await making.exited;
    await sql(
      url,
      `CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.price := 1; RETURN NEW; END $$;
       CREATE TRIGGER change BEFORE INSERT ON signals FOR EACH ROW EXECUTE FUNCTION change()`,
    );
    expect(await cli(["copy", "--from", dataDir, "--to", url])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("signals of postgres://"),
    });
    await expectRefusal(["desk", "list", "--store", url], "is not complete");
  });

  test("it refuses a target with other data, and a source or target that a server uses", async () => {
    const [one, other] = [await seed({ signals: 3 }), await seed({ signals: 3 })];
    const [url, another] = [await newDatabase(), await newDatabase()];
    await refused(url, join(temporaryFolder(), "back"), "there is nothing to copy");
    await copy(one.dataDir, url);
    await refused(other.dataDir, url, "has desks or keys already");
    await refused(url, other.dataDir, "has a database already");

    await sql(url, "UPDATE signalbox SET copying = true");
    await refused(other.dataDir, url, "a copy of another database");
    await sql(
      url,
      "DELETE FROM signals WHERE seq = 3; UPDATE signals SET id = 'x' || id WHERE seq = 2",
    );
    await refused(one.dataDir, url, "has signals that");
    await sql(url, "UPDATE signals SET id = substr(id, 2) WHERE seq = 2");
    await copy(one.dataDir, url);

    const onFolder = await startServe([], { dataDir: one.dataDir });
    await refused(one.dataDir, another, "already using");
    onFolder.kill("SIGTERM");
    await startServe(["--store", url]);
    await refused(url, join(temporaryFolder(), "back"), "stop all servers that use it");
  });

  test("without the rights or a table it says what to type, and works after that", async () => {
    const { dataDir } = await seed({ signals: 3 });
    const url = await newDatabase();
    await copy(dataDir, url);
    await sql(
      url,
      "CREATE ROLE copier LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO copier",
    );
    const asCopier = url.replace("tester@", "copier@");
    const back = join(temporaryFolder(), "back");
    const { code, stderr } = await cli(["copy", "--from", asCopier, "--to", back]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /may not make or use the tables of .* \(42501: permission denied/,
      ),
    });
    const [, grants = ""] = /type in psql: (.*)/.exec(stderr) ?? [];
    await sql(url, grants.replaceAll("USER", "copier"));
    await copy(asCopier, back);

    await sql(url, "DROP TABLE audit");
    await refused(url, join(temporaryFolder(), "back"), "lacks a table (42P01: ");
    const target = await newDatabase();
    await copy(dataDir, target);
    await sql(target, "UPDATE signalbox SET copying = true; DROP TABLE audit");
    await refused(dataDir, target, "make an empty one with createdb");
  });

  test("a server that is started on the source meanwhile keeps the target closed", async () => {
    const { dataDir } = await seed({ signals: SIGNALS });
    const [url, back] = [await newDatabase(), join(temporaryFolder(), "back")];
    await copy(dataDir, url);
    const child = spawn(["copy", "--from", url, "--to", back], {});
    const stderr = new Response(child.stderr).text();
    while ((await signalsIn(back)) === 0) await Bun.sleep(1);
    child.kill("SIGSTOP");
    const started = await startServe(["--store", url]);
    child.kill("SIGCONT");
    expect(await child.exited).toBe(1);
    expect(await stderr).toContain("stop all servers that use it");
    await expectRefusal(["desk", "list", "--data", back], "is not complete");
    started.kill("SIGTERM");
    await started.exited;
    await copy(url, back);
  });

  test("its source and target are of two engines, and one may be in the environment", async () => {
    const { dataDir } = await seed({ signals: 2 });
    const url = await newDatabase();
    await expectUsageError(["copy", "--from", dataDir], /^signalbox: --to is missing: /);
    await expectUsageError(["copy", "--from", url, "--to", url], /pg_dump/);
    await expectUsageError(["copy", "--from", dataDir, "--to", dataDir], /signalbox backup/);
    const env = { SIGNALBOX_STORE: url.replace("@", ":secret@") };
    const result = await cli(["copy", "--from", dataDir, "--json"], { env });
    expect(JSON.parse(result.stdout)).toMatchObject({
      to: url.replace(/tester@/, ""),
      tables: { signals: 2 },
    });
    expect(result.stdout + result.stderr).not.toContain("secret");
  });
});

describe.skipIf(server === null)("verify --store", () => {
  const changes: readonly [check: string, change: string][] = [
    ["ids_rising", `UPDATE signals SET id = '00' || substr(id, 3) WHERE seq = 4000`],
    ["values", "UPDATE signals SET symbol = chr(7) WHERE seq = 1"],
    ["values", `UPDATE signals SET metadata = '{"a":' WHERE seq = 5000`],
    ["blocks", "UPDATE signals SET symbol = 'other' WHERE seq = 1"],
    ["blocks", "DELETE FROM signals WHERE seq = 2"],
    [
      "foreign_keys",
      `ALTER TABLE signals DISABLE TRIGGER ALL; DELETE FROM invitations; DELETE FROM passkeys;
       ALTER TABLE members DISABLE TRIGGER ALL; DELETE FROM members`,
    ],
    ["turn", "UPDATE turn SET seq = 1"],
    ["turn", "UPDATE turn SET last_ms = 1"],
    ["schema", "ALTER TABLE api_keys DISABLE TRIGGER keys_changed"],
    ["schema", "DROP INDEX signals_client_signal_id"],
    ["schema", "ALTER TABLE passkeys DROP COLUMN name"],
    ["schema", "ALTER TABLE signals ALTER symbol DROP NOT NULL"],
    ["schema", "DROP TABLE audit"],
    [
      "unique",
      `DROP INDEX signals_client_signal_id;
       UPDATE signals SET client_signal_id = 'twice' WHERE seq IN (4, 9);
       CREATE INDEX signals_client_signal_id ON signals (desk_id, client_signal_id);
       UPDATE pg_index SET indisunique = true WHERE indexrelid = 'signals_client_signal_id'::regclass`,
    ],
  ];
  test("says what is wrong, with exit code 1", async () => {
    const { dataDir } = await seedAll();
    const url = await newDatabase();
    await copy(dataDir, url);
    for (const [check, change] of changes) {
      const broken = await newDatabase();
      await server?.query(`DROP DATABASE ${nameOf(broken)}`);
      await server?.query(`CREATE DATABASE ${nameOf(broken)} TEMPLATE ${nameOf(url)}`);
      await sql(broken, change);
      const { code, stdout } = await cliHere(["verify", "--store", broken, "--json"]);
      const { checks } = JSON.parse(stdout) as { checks: Record<string, { ok: boolean | null }> };
      expect([change, code, checks[check]?.ok]).toEqual([change, 1, false]);
      expect(checks["integrity"]?.ok).toBeNull();
    }
    // An index more is the operator's affair.
    await sql(url, "CREATE INDEX added ON signals (symbol)");
    expect(await cliHere(["verify", "--store", url])).toMatchObject({ code: 0 });
  });
});

test("what is for a file names PostgreSQL's tools, with exit code 2", async () => {
  const store = ["--store", "postgres://signalbox:secret@db.example.com/signalbox"];
  const says =
    /^signalbox: [^\n]+ postgres:\/\/db\.example\.com\/signalbox [^\n]*pg_dump[^\n]+\(PITR\)\.\n$/;
  await expectUsageError(["backup", "/backup/a.db", ...store], says);
  await expectUsageError(["restore", "/backup/a.db", ...store], /with pg_restore, [^\n]+\(PITR\)/);
  await expectUsageError(["verify", "/backup/a.db", ...store], "unset SIGNALBOX_STORE, to verify");
  await expectUsageError(["serve", "--backup-dir", "/backup", ...store], says);
});
