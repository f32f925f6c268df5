/** Takes one defence at a time out of a copy of the source: the test that covers it must fail. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { Glob } from "bun";
import { cli } from "../../kit/cli.ts";
import { isFull, report } from "../kit/faults.ts";
import { type Edit, runTest, type TestName, variantOf } from "../kit/variant.ts";

setDefaultTimeout(400_000);

interface Mutant {
  readonly name: string;
  readonly edits: readonly Edit[];
  readonly test: TestName;
  /** Makes every fsync of the server do nothing. */
  readonly isWithoutFsync?: true;
  /** Fast enough for small runs. */
  readonly isQuick?: true;
}

/** A test of the faults by the beginning of its title. */
const of = (file: string, title: string): TestName => ({
  file: `test/faults/${file}.test.ts`,
  title,
});
const kill = of("process/kill", "killed again and again under load");
const stop = of("process/stop", "stopped under load, it leaves no request without an answer: HTTP");

const BATCH = "store/sqlite/append/batch.ts";
const FAILURES = "store/sqlite/files/failures.ts";
const WRITER = "store/sqlite/append/writer.ts";
const UNIQUE_INDEX = "CREATE UNIQUE INDEX signals_client_signal_id";
const CONFLICT = "ON CONFLICT (desk_id, client_signal_id) DO NOTHING";

const mutants: readonly Mutant[] = [
  {
    name: "a removed log is not noticed",
    edits: [
      {
        file: "store/sqlite/log/removed-log.ts",
        find: "inodeOf(path) !== inode",
        replace: "false",
      },
    ],
    test: of("disk/removed-log", "the log removed under load"),
  },
  {
    name: "fsync does nothing",
    edits: [],
    isWithoutFsync: true,
    test: of("disk/power", "acknowledged signals survive a power cut"),
  },
  {
    name: "one transaction in ten is acknowledged without a commit",
    edits: [
      {
        file: BATCH,
        find: "      this.#commit();\n",
        replace: 'if (Math.random() < 0.1) this.#db.run("ROLLBACK"); else this.#commit();\n',
      },
    ],
    test: kill,
  },
  {
    name: "client_signal_id has no unique index",
    edits: [
      { file: "../schema.sql", find: UNIQUE_INDEX, replace: UNIQUE_INDEX.replace("UNIQUE", "") },
      { file: BATCH, find: CONFLICT, replace: "ON CONFLICT (id) DO NOTHING" },
    ],
    test: kill,
  },
  {
    name: "the unique index ignores the desk",
    edits: [
      {
        file: "../schema.sql",
        find: UNIQUE_INDEX,
        replace: `CREATE UNIQUE INDEX wrong ON signals (client_signal_id); ${UNIQUE_INDEX}`,
      },
      { file: BATCH, find: CONFLICT, replace: "ON CONFLICT DO NOTHING" },
      {
        file: BATCH,
        find: "WHERE desk_id = ? AND client_signal_id = ?",
        replace: "WHERE ?1 = ?1 AND client_signal_id = ?2",
      },
    ],
    test: of("network/hostile", "generated bodies are stored as sent"),
    isQuick: true,
  },
  {
    name: "a request's headers are logged",
    edits: [
      {
        file: "intake/server.ts",
        find: "    exchange.identity = owner;\n",
        replace: 'exchange.identity = owner; service.log.info(headers.toJSON(), "request");\n',
      },
    ],
    test: of("network/hostile", "secrets in wrong places"),
    isQuick: true,
  },
  {
    name: "the transaction does not check the key again",
    edits: [
      {
        file: BATCH,
        find: "this.#isKeyValid(submission, keys)\n",
        replace: "(this.#isKeyValid(submission, keys) || true)\n",
      },
    ],
    test: of("process/revoke", "once a revoke has committed, no signal of that key commits"),
    isQuick: true,
  },
  {
    name: "a failed fsync of a commit counts as temporary",
    edits: [{ file: FAILURES, find: "/^SQLITE_(BUSY|", replace: "/^SQLITE_(IOERR_FSYNC|BUSY|" }],
    test: of("disk/fsync", "the N-th fsync of the log fails"),
    isQuick: true,
  },
  {
    name: "a failed fsync in a checkpoint is ignored",
    edits: [
      {
        file: "store/sqlite/append/database.worker.ts",
        find: "if (!isTransient(error)) throw error;",
        replace: "void isTransient(error);",
      },
    ],
    test: of("disk/fsync", "the N-th fsync of the database fails in a checkpoint"),
  },
  {
    name: "a full disk ends the server",
    edits: [{ file: FAILURES, find: "isRefusedWrite(error) || hasCode", replace: "hasCode" }],
    test: of("disk/full", "a full ext4: 503 until there is room again"),
  },
  {
    name: "signals are acknowledged although the disk is full",
    edits: [
      {
        file: BATCH,
        find: 'batch.map(() => ({ kind: "unavailable", reason, obstacle }))',
        replace:
          'batch.map(({ receivedAt }) => ({ kind: "stored", id: this.#ids.next(receivedAt) }))',
      },
    ],
    test: of("disk/full", "EDQUOT at every write of the log: 503 until it is over"),
  },
  {
    name: "the queue has no limit",
    edits: [
      { file: WRITER, find: "_SIGNALS_MAX = 10_000", replace: "_SIGNALS_MAX = Infinity" },
      { file: WRITER, find: "_UNITS_MAX = 32 * 1024 * 1024", replace: "_UNITS_MAX = Infinity" },
    ],
    test: of("disk/slow", "an fsync takes seconds"),
  },
  {
    name: "ids follow the clock when it steps back",
    edits: [
      {
        file: "domain/signal/id.ts",
        find: "timeMs > this.#timeMs",
        replace: "timeMs !== this.#timeMs",
      },
    ],
    test: of("process/clock", "the clock steps under load"),
    isQuick: true,
  },
  {
    name: "connections over the limit stay open",
    edits: [
      {
        file: "http/limits/connections.ts",
        find: "for (const connection of excess) sockets.shutDown(connection);",
        replace: "",
      },
    ],
    test: of("network/exhaustion", "more clients than descriptors"),
  },
  {
    name: "a stop closes connections that are still in use",
    edits: [
      { file: "http/listener.ts", find: "LAST_REQUESTS_MS = 500", replace: "LAST_REQUESTS_MS = 0" },
      {
        file: "http/listener.ts",
        find: "await this.#stop(false);",
        replace: "await this.#stop(true);",
      },
    ],
    test: stop,
  },
  {
    name: "a stop accepts new connections",
    edits: [{ file: "http/listener.ts", find: "holdOffNew(this.#listening());", replace: "" }],
    test: stop,
  },
  {
    name: "two servers get the lock of a folder",
    edits: [
      {
        file: "store/sqlite/files/lock.ts",
        find: '.run("BEGIN IMMEDIATE")',
        replace: '.run("BEGIN")',
      },
    ],
    test: of("process/processes", "of several servers that start at once over a killed one's lock"),
  },
  {
    name: "commands do not wait for locks",
    edits: [
      {
        file: "store/sqlite/files/transaction.ts",
        find: "COMMAND_BUSY_MS = 10_000",
        replace: "COMMAND_BUSY_MS = 0",
      },
    ],
    test: of("process/processes", "no command meets a lock beside full load"),
  },
  {
    name: "a server does not lock its folder",
    edits: [
      {
        file: "store/sqlite/store.ts",
        find: "const lock = lockFolder(dataDir, onTightened);",
        replace: "const lock = { close: () => void lockFolder, [Symbol.dispose]: () => {} };",
      },
    ],
    test: {
      file: "test/store/restore.test.ts",
      title: "restore over a database is refused while a server runs on it",
    },
    isQuick: true,
  },
  {
    name: "a backup leaves out the first 500 signals",
    edits: [
      {
        file: "store/sqlite/copies/copy.ts",
        find: 'db.query("VACUUM INTO ?").run(partial);',
        replace:
          'db.query("VACUUM INTO ?").run(partial); const copy = new (db.constructor as typeof Database)(partial); copy.run("DELETE FROM signals WHERE seq <= 500"); copy.close();',
      },
    ],
    test: of("disk/drill", "the data folder is removed: a restore brings back every signal"),
  },
  {
    name: "damage in the log is ignored",
    edits: [
      {
        file: "store/sqlite/log/log-damage.ts",
        find: "if (reading.damaged === null) return null;",
        replace: "if (reading) return null;",
      },
    ],
    test: of("disk/flips", "a damaged log is refused"),
  },
];

const tests = new Map(
  mutants.map(({ test: { file, title } }) => [`${file}: ${title}`, { file, title }]),
);

test.each(isFull ? [...tests.values()] : [])("control: $file, $title passes", async (name) => {
  const { code, output } = await runTest(name, variantOf());
  if (code !== 0) throw new Error(output);
});

test.each(mutants.filter(({ isQuick }) => isFull || isQuick === true))(
  "caught: $name",
  async ({ name, edits, test: { file, title }, isWithoutFsync }) => {
    const [library] = new Glob("/usr/lib/*/libeatmydata.so").scanSync();
    const preload = isWithoutFsync === true ? library : undefined;
    const program = variantOf(...edits);
    expect(await cli(["version"], { program })).toMatchObject({ code: 0 });
    const { code, output } = await runTest({ file, title }, program, preload);
    if (code === 0) throw new Error(`"${title}" passes although ${name}:\n${output}`);
    // A title that is in no file would fail as well.
    expect(output).toMatch(/^ *1 fail$/m);
    report(`mutant: ${name}`, 1, `${file} fails`);
  },
);
