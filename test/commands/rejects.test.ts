/** `signalbox signals rejects` and `desk keep-sent`, beside a running server. */
import { expect, test } from "bun:test";
import { commandsOn, expectRefusal, mintKey, startServe } from "../kit/cli.ts";
import { post, temporaryFolder } from "../kit/setup.ts";
import { onTerminal } from "../kit/terminal.ts";

interface Reject {
  readonly request_id: string;
  readonly desk: string;
  readonly client_signal_id: string | null;
  readonly body: string;
}

async function startServer() {
  const server = await startServe(["--console-listen", "127.0.0.1:0"]);
  const { run, json } = commandsOn(server.dataDir);
  const rejects = async (count: number, ...args: string[]): Promise<Reject[]> => {
    let found: Reject[] = [];
    for (let attempt = 0; attempt < 100; attempt += 1) {
      found = await json<Reject[]>("signals", "rejects", ...args);
      if (found.length === count) break;
      await Bun.sleep(200);
    }
    expect(found).toHaveLength(count);
    return found;
  };
  return { ...server, run, json, rejects };
}

test("signals rejects shows what was sent and why it was rejected, of all desks or one", async () => {
  const { dataDir, url, run, rejects } = await startServer();
  const alpha = await mintKey(dataDir);
  const beta = await mintKey(dataDir, "beta");
  const sent = {
    side: "up",
    client_signal_id: "order 1",
    metadata: { password: "hush", n: "x\u202ey" },
  };
  const first = await post(url, alpha.key, sent);
  expect(first.status).toBe(422);
  expect((await post(url, beta.key, { sied: 1 })).status).toBe(422);
  const [newest, oldest] = await rejects(2);
  expect(newest).toMatchObject({ desk: "beta", client_signal_id: null });
  expect(oldest).toMatchObject({
    request_id: first.headers.get("X-Request-Id"),
    desk: "alpha",
    key_id: alpha.id,
    key_label: null,
    key_last4: alpha.key.slice(-4),
    status: 422,
    error: "validation_failed",
    fields: { side: "must be one of: open, close" },
    more_fields: 0,
    client_signal_id: "order 1",
    body: expect.stringContaining('"metadata":{"password":"…","n":"x\u202ey"}') as string,
  });
  expect(await rejects(1, "--desk", "alpha")).toEqual([oldest as Reject]);
  expect(await rejects(1, "--limit", "1")).toEqual([newest as Reject]);
  const { stdout } = await run("signals", "rejects", "--desk", "alpha");
  expect(stdout).toMatch(
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}desk alpha {2}key \(…\w{4}\) {2}422 validation_failed {2}request [0-9a-f-]{36}\n {2}side: must be one of: open, close\n {2}client_signal_id: order 1\n {2}sent, \d+ bytes:\n {6}\{/,
  );
  expect(stdout).toContain('"n":"x\\u202ey"');
  expect(stdout).not.toContain("hush");
});

test("what a bot sent moves no cursor and changes no colour of a terminal", async () => {
  const { dataDir, url, rejects } = await startServer();
  const { key } = await mintKey(dataDir);
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const body = "{\u001b[31m\u009b2J\r\u202e\u0007\n\u001b]0;title\u0007";
  await fetch(`${url}/v1/signals`, { method: "POST", headers, body });
  await rejects(1);
  const output = await onTerminal(["signals", "rejects", "--data", dataDir]);
  expect(output.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u202e]/u);
  expect(output).toContain("\\u001b[31m");
});

test("desk keep-sent --off deletes what is kept, beside the server, and later requests are only counted", async () => {
  const { dataDir, url, run, json, rejects } = await startServer();
  const { key } = await mintKey(dataDir);
  await post(url, key, { side: "up" });
  await rejects(1);
  expect(await json("desk", "keep-sent", "alpha", "--off")).toMatchObject({ keeps_sent: false });
  expect(await rejects(0)).toEqual([]);
  const none = await run("signals", "rejects", "--desk", "alpha");
  expect(none.stderr).toBe('Desk "alpha" keeps nothing of what requests sent.\n');
  await post(url, key, { side: "up" });
  // Until it is written.
  await Bun.sleep(3_000);
  expect(await rejects(0)).toEqual([]);
  expect((await run("desk", "keep-sent", "alpha")).stderr).toBe(
    'What the rejected requests of desk "alpha" send is kept.\n',
  );
  await post(url, key, { side: "down" });
  const [kept, ...others] = await rejects(1);
  expect(others).toEqual([]);
  expect(kept?.body).toContain("down");
  expect((await run("audit", "--limit", "2")).stdout).toContain(
    "deleted what rejected requests sent",
  );
});

test("without a server or anything kept, both say so, and create nothing", async () => {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  const { run } = commandsOn(dataDir);
  expect((await run("signals", "rejects")).stderr).toBe("No rejected requests found.\n");
  await run("desk", "keep-sent", "alpha", "--off");
  expect(await Array.fromAsync(new Bun.Glob("*activity*").scan(dataDir))).toEqual([]);
  await expectRefusal(
    ["signals", "rejects", "--desk", "x", "--data", dataDir],
    'There is no desk "x"',
  );
});
