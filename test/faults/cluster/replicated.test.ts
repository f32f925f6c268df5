/** What is told to bots and readers is replicated: cases that are too rare to wait for, made by hand. */
import { expect, test } from "bun:test";
import { cli, freePort, startServe } from "../../kit/cli.ts";
import { post, until } from "../../kit/setup.ts";
import "../kit/faults.ts";
import { startTrio, type Trio } from "./_standbys.ts";

const WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

/** Two servers of Signalbox, with a key that sends and one that reads. */
async function startServers({ url }: Trio) {
  const env = { SIGNALBOX_STORE: url };
  const print = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await cli(args, { env });
    if (code !== 0) throw new Error(stderr);
    return stdout.trim();
  };
  await print("desk", "create", "alpha");
  const start = async () => {
    const port = await freePort();
    const { url: own } = await startServe(
      [`--read-listen=127.0.0.1:${port}`, "--console-listen=off"],
      { env },
    );
    return { url: own, feed: `http://127.0.0.1:${port}/feed` };
  };
  const key = await print("key", "mint", "--desk", "alpha");
  const readKey = await print("key", "mint", "--read");
  const headers = { Authorization: `Bearer ${readKey}` };
  return {
    one: await start(),
    other: await start(),
    key,
    send: async (server: { url: string }, id: string) => {
      const { status, body } = await post(server.url, key, { client_signal_id: id });
      return { status, id: body["id"] };
    },
    /** The client's ids of the signals that the feed gives, or the status. */
    read: async (server: { feed: string }) => {
      const answer = await fetch(`${server.feed}?wait=0`, { headers });
      if (!answer.ok) return answer.status;
      const lines = (await answer.text()).trim().split("\n").slice(0, -1);
      return lines.map(
        (line) => (JSON.parse(line) as { client_signal_id: string }).client_signal_id,
      );
    },
  };
}

test.each(["pg_terminate_backend", "pg_cancel_backend"])(
  "%s of a commit that waits for a standby: nobody is told of the signal until it is replicated",
  async (ending) => {
    const trio = await startTrio();
    const { primary, standbys } = trio;
    // The servers ask for a synchronous commit themselves.
    await primary.query("ALTER DATABASE signalbox SET synchronous_commit = off");
    const { one, other, send, read } = await startServers(trio);
    expect(await send(one, "first")).toMatchObject({ status: 201 });
    expect(await read(other)).toEqual(["first"]);

    for (const standby of standbys) await standby.kill();
    let answer: Awaited<ReturnType<typeof send>> | null = null;
    const waiting = send(one, "lost").then((found) => (answer = found));
    await until(async () => answer !== null || (await primary.query(WAITING)).length > 0);
    expect(answer, "an answer before the commit was replicated").toBeNull();
    await primary.query(`SELECT ${ending}(pid) FROM (${WAITING}) AS one`);
    // It is visible, and on one machine only.
    const [told, repeated] = await Promise.all([read(other), send(other, "lost"), waiting]);
    expect(told, "what a reader got").toBe(503);
    expect(repeated, "what a retry got").toMatchObject({ status: 503 });
    expect(answer).toMatchObject({ status: 503 });

    await primary.kill();
    await standbys[0].start();
    standbys[0].promote();
    await until(async () => (await send(other, "next")).status < 300, 200);
    await until(async () => (await read(one)) !== 503, 200);
    expect(await read(one)).toEqual(["first", "next"]);
    expect(await send(one, "lost")).toMatchObject({ status: 201 });
    expect(await read(other)).toEqual(["first", "next", "lost"]);
  },
);
