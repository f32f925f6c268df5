/** With a defence taken out, the test that holds the service to it goes red, and for that reason. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { isFull, report } from "./_faults.ts";
import { eatMyData, runTest, type TestName } from "./_mutant.ts";
import type { Edit } from "./_variant.ts";

setDefaultTimeout(300_000);

interface Case extends TestName {
  readonly mutation: string;
  readonly edits: readonly Edit[];
  /** Installs what it needs. */
  readonly preload?: () => string;
  /** What the test must say, and not anything else. */
  readonly red: string | RegExp;
  /** Fast enough for every run of the tests. */
  readonly isQuick?: true;
}

const kill = {
  file: "test/faults/kill.test.ts",
  title: "killed again and again under load, it keeps every signal that it acknowledged",
};
const stop = {
  file: "test/faults/stop.test.ts",
  title: "stopped under load, it leaves no request without an answer: HTTP",
};
const cases: readonly Case[] = [
  {
    mutation: "fsync does nothing (libeatmydata)",
    file: "test/faults/power.test.ts",
    title: "what was acknowledged is there after a power cut",
    edits: [],
    preload: eatMyData,
    red: "acknowledged signals that are missing",
  },
  {
    mutation: "signals are acknowledged, and committed 10 ms later or with the next batch",
    ...kill,
    edits: [
      {
        file: "store/sqlite/batch.ts",
        text: 'this.#db.run("BEGIN IMMEDIATE");',
        replacement: 'if (this.#db.inTransaction) this.#commit(); this.#db.run("BEGIN IMMEDIATE");',
      },
      {
        file: "store/sqlite/batch.ts",
        text: "      this.#commit();\n",
        replacement:
          "      setTimeout(() => { if (this.#db.inTransaction) this.#commit(); }, 10);\n",
      },
    ],
    red: "acknowledged signals that are missing",
  },
  {
    mutation: "client_signal_id has no unique index",
    ...kill,
    edits: [
      {
        file: "../schema.sql",
        text: "CREATE UNIQUE INDEX signals_client_signal_id",
        replacement: "CREATE INDEX signals_client_signal_id",
      },
      {
        file: "store/sqlite/batch.ts",
        text: "ON CONFLICT (desk_id, client_signal_id) DO NOTHING",
        replacement: "ON CONFLICT (id) DO NOTHING",
      },
    ],
    red: "every client_signal_id is stored once",
  },
  {
    mutation: "a key is not looked at again inside the transaction",
    file: "test/faults/revoke.test.ts",
    title: "once a revoke has committed, nothing of that key commits any more",
    edits: [
      {
        file: "store/sqlite/batch.ts",
        text: "this.#isKeyValid(submission, keys)\n",
        replacement: "(this.#isKeyValid(submission, keys) || true)\n",
      },
    ],
    red: "signals of the key after its revoke",
    isQuick: true,
  },
  {
    mutation: "a failed fsync of a commit is taken for one that may succeed later",
    file: "test/faults/fsync.test.ts",
    title: "the N-th fsync of the log fails",
    edits: [
      {
        file: "store/sqlite/failures.ts",
        text: "/^SQLITE_(BUSY|LOCKED)/",
        replacement: "/^SQLITE_(BUSY|LOCKED|IOERR_FSYNC)/",
      },
    ],
    red: 'not contain: "HTTP/1.1 201"',
    isQuick: true,
  },
  {
    mutation: "a failed fsync of the database is passed over in a checkpoint",
    file: "test/faults/fsync.test.ts",
    title: "the N-th fsync of the database fails, in a checkpoint",
    edits: [
      {
        file: "store/sqlite/checkpoint.ts",
        text: "if (!isTransient(error)) throw error;",
        replacement: "void isTransient(error);",
      },
    ],
    red: "signals after which nothing has failed",
  },
  {
    mutation: "a full disk ends the server",
    file: "test/faults/full.test.ts",
    title: "a full ext4: 503 until there is room again",
    edits: [
      {
        file: "store/sqlite/failures.ts",
        text: "return isRefusedWrite(error) || hasCode",
        replacement: "return hasCode",
      },
    ],
    red: "answers on a full disk",
  },
  {
    mutation: "a full disk is passed over, and signals are acknowledged",
    file: "test/faults/full.test.ts",
    title: "EDQUOT at every write of the log: 503 until it is over",
    edits: [
      {
        file: "store/sqlite/batch.ts",
        text: 'if (isTransient(error)) return batch.map(() => ({ kind: "unavailable", reason }));',
        replacement:
          'if (isTransient(error)) return batch.map(({ receivedAt }) => ({ kind: "stored", id: this.#ids.next(receivedAt) }));',
      },
    ],
    red: "signals after which none was refused",
  },
  {
    mutation: "the queue has no limit",
    file: "test/faults/slow.test.ts",
    title: "an fsync takes seconds",
    edits: [
      {
        file: "store/sqlite/writer.ts",
        text: "_SIGNALS_MAX = 10_000",
        replacement: "_SIGNALS_MAX = Infinity",
      },
      {
        file: "store/sqlite/writer.ts",
        text: "QUEUE_METADATA_UNITS_MAX = 32 * 1024 * 1024",
        replacement: "QUEUE_METADATA_UNITS_MAX = Infinity",
      },
    ],
    red: "refusedMeanwhile",
  },
  {
    mutation: "ids follow the clock, wherever it goes",
    file: "test/faults/clock.test.ts",
    title: "steps under load while it runs",
    edits: [
      {
        file: "domain/id.ts",
        text: "if (timeMs > this.#timeMs) this.#startAt(timeMs);",
        replacement: "if (timeMs !== this.#timeMs) this.#startAt(timeMs);",
      },
    ],
    red: "ids rise in the order of storage",
    isQuick: true,
  },
  {
    mutation: "connections over the limit are counted, and not cut",
    file: "test/faults/exhaustion.test.ts",
    title: "more clients than descriptors",
    edits: [
      {
        file: "net/connections.ts",
        text: "this.#cutQuietest(open, excess);",
        replacement: "this.#cut += excess;",
      },
    ],
    red: /expect\((unwell|Math\.min\(\.\.\.descriptors\))\)/,
  },
  {
    mutation: "a stop closes connections that are not quiet yet",
    ...stop,
    edits: [
      {
        file: "net/listener.ts",
        text: "QUIET_MS = 250",
        replacement: "QUIET_MS = 0",
      },
    ],
    red: "requests without an answer",
  },
  {
    mutation: "a stop lets new connections come",
    ...stop,
    edits: [{ file: "net/listener.ts", text: "this.#group.holdOffNew();", replacement: "" }],
    red: "requests without an answer",
  },
  {
    mutation: "a server does not lock its folder",
    file: "test/restore.test.ts",
    title: "restore over a database is refused while a server runs on it",
    edits: [
      {
        file: "app.ts",
        text: "const lock = lockFolder(config.dataDir, onTightened);",
        replacement: "const lock = { release: () => void lockFolder };",
      },
    ],
    red: '- "code": 1, + "code": 0',
    isQuick: true,
  },
  {
    mutation: "a backup leaves out the first 500 signals",
    file: "test/faults/drill.test.ts",
    title: "the data folder is removed: a restore brings back every signal",
    edits: [
      {
        file: "store/sqlite/copy.ts",
        text: 'let done: Newest = { seq: Number.MIN_SAFE_INTEGER, id: "" };',
        replacement:
          "let done = db.query<Newest, []>(`SELECT seq, id FROM source.${table} WHERE seq <= 500 ORDER BY seq DESC`).get() ?? { seq: 0, id: '' };",
      },
    ],
    red: "acknowledged signals that are missing",
  },
  {
    mutation: "what is behind a damaged place of the log is given up in silence",
    file: "test/faults/flips.test.ts",
    title: "a damaged log is refused, but where it ends as a power cut could have left it",
    edits: [
      {
        file: "store/sqlite/log-damage.ts",
        text: "if (reading.damage === null) return null;",
        replacement: "if (reading) return null;",
      },
    ],
    // Of `verify`, which looks at the log as a start does.
    red: /"code": 1.*"code": 0/,
  },
];

/** A control: where nothing is taken out, the same tests pass in the same way of running them. */
const tests = new Map(cases.map(({ file, title }) => [`${file}: ${title}`, { file, title }]));

test.each(isFull ? [...tests.values()] : [])("green: $file, $title", async (name) => {
  const { passed, failed, output } = await runTest(name, { edits: [] });
  if (passed !== 1 || failed !== 0) throw new Error(output);
});

test.each(cases.filter(({ isQuick }) => isFull || isQuick === true))(
  "red: $mutation",
  async ({ edits, file, mutation, preload, red, title }) => {
    const mutant = preload === undefined ? { edits } : { edits, preload: preload() };
    const { passed, failed, failure, output } = await runTest({ file, title }, mutant);
    if (failed !== 1) throw new Error(`${mutation}: ${file} does not fail:\n${output}`);
    expect({ passed, failure }).toEqual({
      passed: 0,
      failure: typeof red === "string" ? expect.stringContaining(red) : expect.stringMatching(red),
    });
    report("mutation", { injected: mutation, times: 1, checked: `${file} goes red: ${failure}` });
  },
);
