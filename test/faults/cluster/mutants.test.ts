/** Takes one defence of the engine for PostgreSQL at a time out of a copy of the source: its test must fail. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { cli } from "../../kit/cli.ts";
import { isFull, report } from "../kit/faults.ts";
import { type Edit, edit, runTest, type TestName, variantOf } from "../kit/variant.ts";

setDefaultTimeout(400_000);

const of = (file: string, title: string): TestName => ({
  file: `test/faults/cluster/${file}.test.ts`,
  title,
});
const revoke = of("revoke", "a batch that waits while its key is revoked stores nothing");
const ended = of("replicated", "pg_terminate_backend of a commit that waits for a standby");
const BATCH = "store/postgres/batch.ts";
const APPEND = "const [row] = await this.#append(pg, candidates);";

const mutants: Readonly<Record<string, readonly [TestName, says: string, Edit]>> = {
  "a batch does not look at the version of the keys": [
    revoke,
    "what a bot with a revoked key got",
    edit(BATCH, "WHERE keys_version = $4", "WHERE keys_version = $4 OR true"),
  ],
  "the feed does not wait for a commit": [
    ended,
    "what a reader got",
    edit("store/postgres/store.ts", "if (page.signals.length > 0) await writer.barrier();", ""),
  ],
  "commits are not synchronous": [
    ended,
    "an answer before the commit was replicated",
    edit("store/postgres/pool.ts", "synchronous_commit: commit", 'synchronous_commit: "off"'),
  ],
  "duplicates are answered from a read alone": [
    ended,
    "what a retry got",
    edit(
      BATCH,
      APPEND,
      `const wanted = candidates.map(({ submission: { deskId, signal } }) => ({ desk_id: deskId, client_signal_id: signal.client_signal_id }));
      if ((await rowsOf(pg, FIND, [JSON.stringify(wanted)])).length === candidates.length) {
        await this.#compare(pg, candidates, outcomes);
        return { outcomes, last: 0 };
      }
      ${APPEND}`,
    ),
  ],
};

const all = Object.entries(mutants).map(([name, [covering, says, change]]) => ({
  name,
  says,
  change,
  ...covering,
}));

test("each mutant still finds what it replaces", () => {
  for (const { change } of all) variantOf(change);
});

test.each(isFull ? [revoke, ended] : [])("control: $file, $title passes", async (covering) => {
  const { code, output } = await runTest(covering, variantOf());
  if (code !== 0) throw new Error(output);
});

test.each(all.filter(({ file }) => isFull || file === revoke.file))(
  "caught: $name",
  async ({ name, says, change, file, title }) => {
    const program = variantOf(change);
    expect(await cli(["version"], { program })).toMatchObject({ code: 0 });
    const { code, output } = await runTest({ file, title }, program);
    if (code === 0) throw new Error(`"${title}" passes although ${name}:\n${output}`);
    // Anything else, such as a title that is in no file, would fail as well.
    expect(output).toContain(says);
    report(`mutant: ${name}`, 1, `${file} fails`);
  },
);
