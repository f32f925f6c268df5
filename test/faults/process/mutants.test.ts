/** Takes one defence at a time out of a copy of the source: the test that covers it must fail. */
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { cli } from "../../kit/cli.ts";
import { isFull, report } from "../kit/faults.ts";
import { type Edit, edit, runTest, type TestName, variantOf } from "../kit/variant.ts";

/** A test of the faults by the beginning of its title. */
const of = (file: string, title: string): TestName => ({
  file: `test/faults/${file}.test.ts`,
  title,
});
/** One that is fast enough for small runs. */
const quick = (file: string, title: string) => ({ ...of(file, title), isQuick: true });

const kill = of("process/kill", "killed again and again under load");
const stop = of("process/stop", "stopped under load, it leaves no request without an answer: HTTP");

const BATCH = "store/sqlite/append/batch.ts";
const FAILURES = "store/sqlite/files/failures.ts";
const LISTENER = "http/listener.ts";
const QUEUE = "store/records/queue.ts";
const UNIQUE_INDEX = "CREATE UNIQUE INDEX signals_client_signal_id";
const CONFLICT = "ON CONFLICT (desk_id, client_signal_id) DO NOTHING";
const COPY = 'db.query("VACUUM INTO ?").run(copy);';

type Mutant = readonly [test: TestName & { readonly isQuick?: boolean }, ...edits: Edit[]];

const mutants: Readonly<Record<string, Mutant>> = {
  // Without an edit: every fsync of the server does nothing.
  "fsync does nothing": [of("disk/power", "acknowledged signals survive a power cut")],
  "a removed log is not noticed": [
    of("disk/removed-log", "the log removed under load"),
    edit("store/sqlite/log/removed-log.ts", "inodeOf(path) !== inode", "false"),
  ],
  "one transaction in ten is acknowledged without a commit": [
    kill,
    edit(
      BATCH,
      "      this.#commit();\n",
      'if (Math.random() < 0.1) this.#db.run("ROLLBACK"); else this.#commit();\n',
    ),
  ],
  "client_signal_id has no unique index": [
    kill,
    edit("../schema.sql", UNIQUE_INDEX, UNIQUE_INDEX.replace("UNIQUE", "")),
    edit(BATCH, CONFLICT, "ON CONFLICT (id) DO NOTHING"),
  ],
  "the unique index ignores the desk": [
    quick("network/hostile", "generated bodies are stored as sent"),
    edit(
      "../schema.sql",
      UNIQUE_INDEX,
      `CREATE UNIQUE INDEX wrong ON signals (client_signal_id); ${UNIQUE_INDEX}`,
    ),
    edit(BATCH, CONFLICT, "ON CONFLICT DO NOTHING"),
    edit(
      BATCH,
      "WHERE desk_id = ? AND client_signal_id = ?",
      "WHERE ?1 = ?1 AND client_signal_id = ?2",
    ),
  ],
  "a request's headers are logged": [
    quick("network/hostile", "secrets in wrong places"),
    edit(
      "intake/server.ts",
      "    exchange.identity = owner;\n",
      'exchange.identity = owner; service.log.info(headers.toJSON(), "request");\n',
    ),
  ],
  "the transaction does not check the key again": [
    quick("process/revoke", "once a revoke has committed, no signal of that key commits (SQLite)"),
    edit(
      BATCH,
      "if (!mayStore(key, submission.receivedAt)) continue;",
      "if (key === null) continue;",
    ),
  ],
  "a failed fsync of a commit counts as temporary": [
    quick("disk/fsync", "the N-th fsync of the log fails"),
    edit(FAILURES, "/^SQLITE_(BUSY|", "/^SQLITE_(IOERR_FSYNC|BUSY|"),
  ],
  "a failed fsync in a checkpoint is ignored": [
    of("disk/fsync", "the N-th fsync of the database fails in a checkpoint"),
    edit(
      "store/sqlite/append/database.worker.ts",
      "if (!isTransient(error)) throw error;",
      "void isTransient(error);",
    ),
  ],
  "a full disk ends the server": [
    of("disk/full", "a full ext4: 503 until there is room again"),
    edit(FAILURES, "isRefusedWrite(error) || hasCode", "hasCode"),
  ],
  "signals are acknowledged although the disk is full": [
    of("disk/full", "EDQUOT at every write of the log: 503 until it is over"),
    edit(
      BATCH,
      "batch.map(() => refusal)",
      'batch.map(({ receivedAt }) => ({ kind: "stored", id: this.#ids.next(receivedAt) }))',
    ),
  ],
  "the queue has no limit": [
    of("disk/slow", "an fsync takes seconds"),
    edit(QUEUE, "_SIGNALS_MAX = 10_000", "_SIGNALS_MAX = Infinity"),
    edit(QUEUE, "_UNITS_MAX = 32 * 1024 * 1024", "_UNITS_MAX = Infinity"),
  ],
  "ids follow the clock when it steps back": [
    quick("process/clock", "the clock steps under load"),
    edit("domain/signal/id.ts", "timeMs > this.#timeMs", "timeMs !== this.#timeMs"),
  ],
  "connections over the limit stay open": [
    of("network/exhaustion", "more clients than descriptors"),
    edit(
      "http/limits/connections.ts",
      "for (const { connection } of excess) sockets.shutDown(connection);",
      "",
    ),
  ],
  "a stop closes connections that are still in use": [
    stop,
    edit(LISTENER, "LAST_REQUESTS_MS = 500", "LAST_REQUESTS_MS = 0"),
    edit(LISTENER, "race([this.#stop(false), ", "race([this.#stop(true), "),
  ],
  "a stop accepts new connections": [stop, edit(LISTENER, "holdOffNew(this.#listening());", "")],
  "two servers get the lock of a folder": [
    of("process/processes", "of several servers that start at once over a killed one's lock"),
    edit("store/sqlite/files/lock.ts", '.run("BEGIN IMMEDIATE")', '.run("BEGIN")'),
  ],
  "commands do not wait for locks": [
    of("process/processes", "no command meets a lock beside full load"),
    edit("store/sqlite/files/transaction.ts", "COMMAND_BUSY_MS = 10_000", "COMMAND_BUSY_MS = 0"),
  ],
  "a server does not lock its folder": [
    {
      file: "test/store/restore.test.ts",
      title: "restore over a database is refused while a server runs on it",
      isQuick: true,
    },
    edit(
      "store/sqlite/store.ts",
      "const lock = lockFolder(dataDir, onTightened);",
      "const lock = { close: () => void lockFolder, [Symbol.dispose]: () => {} };",
    ),
  ],
  "a backup leaves out the first 500 signals": [
    of("disk/drill", "the data folder is removed: a restore brings back every signal"),
    edit(
      "store/sqlite/copies/copy.ts",
      COPY,
      `${COPY} const made = new (db.constructor as typeof Database)(copy); made.run("DELETE FROM signals WHERE seq <= 500"); made.close();`,
    ),
  ],
  "signals are not compared with their hash": [
    quick("disk/flips", "a flipped bit in any value of a signal"),
    edit(
      "domain/signal/hash.ts",
      "Buffer.compare(hash, hashOf(id, known)) === 0",
      "known !== null",
    ),
  ],
  "damage in the log is ignored": [
    of("disk/flips", "a damaged log is refused"),
    edit(
      "store/sqlite/log/log-damage.ts",
      "if (reading.damaged === null) return null;",
      "if (reading) return null;",
    ),
  ],
};

const all = Object.entries(mutants).map(([name, [covering, ...edits]]) => ({
  name,
  edits,
  ...covering,
}));
test("each mutant still finds what it replaces", () => {
  for (const { edits } of all) variantOf(...edits);
});

const tests = new Map(all.map((mutant) => [`${mutant.file}: ${mutant.title}`, mutant]));

test.each(isFull ? [...tests.values()] : [])("control: $file, $title passes", async (covering) => {
  const { code, output } = await runTest(covering, variantOf());
  if (code !== 0) throw new Error(output);
});

test.each(all.filter(({ isQuick }) => isFull || isQuick === true))(
  "caught: $name",
  async ({ name, edits, file, title }) => {
    const [library] = new Glob("/usr/lib/*/libeatmydata.so").scanSync();
    const program = variantOf(...edits);
    expect(await cli(["version"], { program })).toMatchObject({ code: 0 });
    const preload = edits.length === 0 ? library : undefined;
    const { code, output } = await runTest({ file, title }, program, preload);
    if (code === 0) throw new Error(`"${title}" passes although ${name}:\n${output}`);
    // A title that is in no file would fail as well.
    expect(output).toMatch(/^ *1 fail$/m);
    report(`mutant: ${name}`, 1, `${file} fails`);
  },
);
