/** `desk list`, `rename` and `archive`, and `key update`, beside a running server. */
import { expect, test } from "bun:test";
import { commandsOn, expectRefusal, mintKey, startServe } from "../kit/cli.ts";
import { seed } from "../store/_databases.ts";
import { post, temporaryFolder } from "../kit/setup.ts";

const cells = (line = "") => line.split(/ {2,}/);

test("desk list shows keys, members, signals and the latest signal", async () => {
  const { dataDir, url } = await startServe();
  const { run, json } = commandsOn(dataDir);
  const { key } = await mintKey(dataDir);
  await mintKey(dataDir, "beta");
  await run("member", "invite", "alpha", "ada@example.com");
  for (let count = 0; count < 2; count += 1) expect((await post(url, key)).status).toBe(201);
  const [heading, ...rows] = (await run("desk", "list")).stdout.trimEnd().split("\n");
  const columns = "NAME STATE KEYS MEMBERS SIGNALS LATEST_SIGNAL DIFFERING PASSKEYS CREATED";
  expect(cells(heading).map((cell) => cell.replace(" ", "_"))).toEqual(columns.split(" "));
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$/) as string;
  expect(rows.map(cells)).toEqual([
    ["alpha", "active", "1/100", "1", "2", time, "0", "optional", time],
    ["beta", "active", "1/100", "0", "0", "-", "0", "optional", time],
  ]);
  const latest_signal = { symbol: "BTC/USDT" };
  expect(await json("desk", "list")).toMatchObject([
    { name: "alpha", active_keys: 1, members: 1, signals: 2, latest_signal },
    { name: "beta", signals: 0, latest_signal: null },
  ]);
});

test("desk list counts read keys, too, as the limit does", async () => {
  const dataDir = temporaryFolder();
  const { run } = commandsOn(dataDir);
  await mintKey(dataDir);
  await run("key", "mint", "--read", "--desk", "alpha");
  expect((await run("desk", "list")).stdout).toMatch(/^alpha +active +2\/100 /m);
});

test("desk list counts up to 100,000 signals, and shows more as 100,000+", async () => {
  const { dataDir } = await seed({ signals: 100_001 });
  const { run, json } = commandsOn(dataDir);
  expect((await run("desk", "list")).stdout).toMatch(/^alpha .* 100,000\+ /m);
  expect(await json("desk", "list")).toMatchObject([{ signals: 100_000 }]);
});

test("desk archive refuses its keys at once, and --undo brings it back", async () => {
  const { dataDir, url } = await startServe();
  const { run } = commandsOn(dataDir);
  const { key } = await mintKey(dataDir);
  const other = await mintKey(dataDir, "beta");
  expect((await post(url, key)).status).toBe(201);
  const { stderr } = await run("desk", "archive", "alpha");
  const undo = `signalbox desk archive alpha --undo --data ${dataDir}`;
  expect(stderr).toEndWith(`Nothing was deleted. Bring it back with: ${undo}\n`);
  expect([(await post(url, key)).status, (await post(url, other.key)).status]).toEqual([401, 201]);
  expect((await run("desk", "list")).stdout).toMatch(/^alpha +archived +0\/100 .* 1 /m);
  expect((await run("key", "list", "--desk", "alpha")).stdout).toMatch(/ archived$/m);
  for (const refused of [
    "key mint --desk alpha",
    "member invite alpha ada@example.com",
    "desk create alpha --if-missing",
  ]) {
    const args = [...refused.split(" "), "--data", dataDir];
    await expectRefusal(args, `Desk "alpha" is archived: bring it back with: ${undo}`);
  }
  expect((await run("desk", "archive", "alpha")).stderr).toContain("is already archived");
  expect((await run("status")).stdout).not.toContain("no active send key");
  await run("desk", "archive", "alpha", "--undo");
  expect((await run("desk", "archive", "alpha", "--undo")).stderr).toContain("is not archived");
  expect((await post(url, key)).status).toBe(201);
});

test("key update changes a key's label", async () => {
  const dataDir = temporaryFolder();
  const { run, json } = commandsOn(dataDir);
  const { id } = await mintKey(dataDir);
  expect((await run("key", "update", id, "--label", "bot-7")).stderr).toContain(
    "has its new label",
  );
  const updated = await json("key", "update", "bot-7", "--label", "bot 8");
  expect(updated).toMatchObject({ id, label: "bot 8", state: "active" });
  expect((await run("key", "list")).stdout).toContain("  bot 8  ");
});

test("a label names the key to rotate that was not rotated yet, and no key to revoke", async () => {
  const dataDir = temporaryFolder();
  const { run, json } = commandsOn(dataDir);
  await run("desk", "create", "alpha");
  await run("key", "mint", "--desk", "alpha", "--label", "bot");
  await run("key", "rotate", "bot");
  const again = await json("key", "rotate", "bot");
  const keys = await json<{ id: string; expires_at: number | null }[]>("key", "list");
  expect(keys.map(({ expires_at }) => expires_at !== null)).toEqual([true, true, false]);
  expect(again).toMatchObject({ id: keys[2]?.id });
  await expectRefusal(["key", "revoke", "bot", "--data", dataDir], "3 keys have this name");
  await run("key", "mint", "--desk", "alpha", "--label", "bot");
  await expectRefusal(["key", "rotate", "bot", "--data", dataDir], "2 keys have this name");
});

test("desk commands print the desk as JSON, and a desk may be renamed to its own name", async () => {
  const { run, json } = commandsOn(temporaryFolder());
  expect(await json("desk", "create", "alpha")).toMatchObject({ name: "alpha", archived_at: null });
  expect(await json("desk", "limit", "alpha", "--keys", "9")).toMatchObject({ keys_max: 9 });
  expect(await json("desk", "rename", "alpha", "omega")).toMatchObject({
    name: "omega",
    keys_max: 9,
  });
  expect(await json("desk", "archive", "omega")).toMatchObject({ archived_at: expect.any(Number) });
  expect(await json("desk", "archive", "omega", "--undo")).toMatchObject({ archived_at: null });
  expect((await run("desk", "rename", "omega", "omega")).stderr).toBe(
    'Desk "omega" already has this name.\n',
  );
});
