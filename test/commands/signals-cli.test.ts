/** `signalbox signals …`: what it finds, prints and writes, beside a server and without one. */
import { describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeTime } from "ulid";
import { cliHere, expectRefusal, mintKey, signalbox, spawn, startServe } from "../kit/cli.ts";
import { edit, editSignals, seed, seededId, seededUlid } from "../store/_databases.ts";
import { emptySignal } from "../store/_signal.ts";
import { hashOfRow } from "../kit/records.ts";
import { onCleanup, post, temporaryFolder } from "../kit/setup.ts";
import { CTRL_C, onTerminal, startOnTerminal } from "../kit/terminal.ts";
import { prettyJson } from "../../src/domain/signal/pretty-json.ts";

const UNKNOWN_ID = "01K5QZ8F3V9X2M7T4B6N1C0D8E";
const SEEDED_AT = 1_700_000_000_000;

interface Line {
  readonly id: string;
  readonly desk: string;
  readonly client_signal_id: string | null;
}

function linesOf<T = Line>(text: string): T[] {
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as T);
}

/** Runs a command that must succeed, and returns its stdout. */
async function run(args: readonly string[], dataDir: string): Promise<string> {
  const { code, stdout, stderr } = await cliHere(["signals", ...args, "--data", dataDir]);
  expect({ args, code, stderr }).toMatchObject({ args, code: 0 });
  return stdout;
}

async function idsOf(args: readonly string[], dataDir: string): Promise<string[]> {
  return linesOf(await run([...args, "--json"], dataDir)).map(({ id }) => id);
}

/** The seeded signals with these numbers. */
function seeded(first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, index) => seededUlid(first + index));
}

/** The id of signal number `n` of {@link varied}, which has the time of its receipt in it. */
function idAt(n: number): string {
  return encodeTime(SEEDED_AT + n) + "0".repeat(16);
}

/** Six signals of desk alpha, some with other values, and one more of desk beta. */
async function varied() {
  const alpha = await seed({ signals: 6 });
  const beta = await mintKey(alpha.dataDir, "beta");
  editSignals(
    alpha.path,
    ...[1, 2, 3, 4, 5, 6].map((n): [string, string, number] => [
      "UPDATE signals SET id = ? WHERE seq = ?",
      idAt(n),
      n,
    ]),
    "UPDATE signals SET symbol = 'AAPL', type = 'stock' WHERE seq = 3",
    "UPDATE signals SET side = 'close', source = 'venue_1' WHERE seq = 4",
    "UPDATE signals SET direction = 'sell' WHERE seq = 5",
    [
      `INSERT INTO signals (seq, id, desk_id, key_id, received_at, client_signal_id, source, type, symbol, side, hash)
       SELECT 7, ?, 2, ?, ?, client_signal_id, source, type, symbol, side, hash FROM signals WHERE seq = 1`,
      idAt(7),
      beta.id,
      SEEDED_AT + 7,
    ],
  );
  return { ...alpha, betaKeyId: beta.id };
}

/** The time of receipt of signal number `n`. */
function momentOf(n: number): string {
  return new Date(SEEDED_AT + n).toISOString();
}

describe("filters", () => {
  test("are the same for list, tail and export", async () => {
    const { dataDir, keyId, betaKeyId } = await varied();
    // They share the filters: each option once for all of them, and its values for one.
    const all = ["list", "tail", "export"] as const;
    for (const [args, wanted, commands = ["list"]] of [
      ["", [1, 2, 3, 4, 5, 6, 7], all],
      ["--desk beta", [7], all],
      ["--symbol AAPL", [3]],
      ["--symbol aap", [3], all],
      ["--symbol BTC/USDT --desk alpha", [1, 2, 4, 5, 6]],
      ["--source venue_1", [4], all],
      ["--type stock", [3], all],
      ["--side close", [4], all],
      ["--direction sell", [5], all],
      [`--key ${betaKeyId}`, [7]],
      ["--key seed", [1, 2, 3, 4, 5, 6], all],
      [`--key ${keyId} --side open --type crypto`, [1, 2, 5, 6]],
      [`--since ${momentOf(5)}`, [5, 6, 7]],
      [`--until ${momentOf(3).replace("Z", "")}`, [1, 2]],
      [`--since ${momentOf(2)} --until ${momentOf(4)}`, [2, 3], all],
      ["--since 2023-11-14", [1, 2, 3, 4, 5, 6, 7]],
      ["--until 2023-11-14", []],
      ["--since 2h", []],
      ["--until 2h", [1, 2, 3, 4, 5, 6, 7]],
      ["--symbol NONE", []],
    ] as const) {
      const ids: string[] = wanted.map(idAt);
      const filter = args.split(" ").filter((arg) => arg !== "");
      const found = commands.map(async (command) => {
        const text = await run(
          [command, ...filter, ...(command === "export" ? [] : ["--json"])],
          dataDir,
        );
        const inOrder = linesOf(text).map(({ id }) => id);
        return command === "list" ? inOrder.toReversed() : inOrder;
      });
      expect({ args, found: await Promise.all(found) }).toEqual({
        args,
        found: commands.map(() => ids),
      });
    }
  });
});

describe("list", () => {
  test("has the newest 50 first, or as many as --limit says, also in several chunks", async () => {
    const { dataDir } = await seed({ signals: 2_500 });
    const newest = seeded(1, 2_500).toReversed();
    expect(await idsOf(["list"], dataDir)).toEqual(newest.slice(0, 50));
    expect(await idsOf(["list", "--limit", "2300"], dataDir)).toEqual(newest.slice(0, 2_300));
    const table = await run(["list", "--limit", "2300"], dataDir);
    expect(table.match(/^RECEIVED/gm)).toHaveLength(1);
    expect(table.trimEnd().split("\n")).toHaveLength(2_301);
  });

  test("has every field as it was sent in a line of JSON", async () => {
    const { dataDir, path, keyId, key } = await seed({ signals: 1 });
    editSignals(
      path,
      `UPDATE signals SET direction = 'buy', metadata = '{"a":\n 1.00000000000000000001}'`,
    );
    const text = await run(["list", "--json"], dataDir);
    expect(text).toContain(`"metadata":{"a":  1.00000000000000000001}`);
    expect(linesOf<object>(text)).toEqual([
      {
        id: seededUlid(1),
        desk: "alpha",
        received_at: SEEDED_AT + 1,
        key_id: keyId,
        key_label: "seed",
        ...emptySignal,
        source: "venue_2",
        type: "crypto",
        symbol: "BTC/USDT",
        direction: "buy",
        price: 0.25,
        client_signal_id: seededId(1),
        metadata: { a: 1 },
      },
    ]);
    expect(text).not.toContain(key.slice(8));
  });

  test("says on stderr that it found nothing", async () => {
    const { dataDir } = await seed({ signals: 1 });
    const where = ["--data", dataDir, "--symbol", "NONE"];
    expect(await cliHere(["signals", "list", ...where])).toEqual({
      code: 0,
      stdout: "",
      stderr: "No signals found.\n",
    });
    expect(await cliHere(["signals", "list", "--json", ...where])).toEqual({
      code: 0,
      stdout: "",
      stderr: "",
    });
  });
});

test("a damaged signal ends each command with its id, after those that were read", async () => {
  const { dataDir, path } = await seed({ signals: 9 });
  edit(path, "UPDATE signals SET price = price + 1 WHERE seq = 7");
  const says = `signalbox: Signal ${seededUlid(7)} is damaged on the server's disk, and is not handed out: its administrator can restore a backup. To see all damage: signalbox verify --data ${dataDir}\n`;
  for (const [args, printed] of [
    [
      ["list", "--json"],
      [9, 8],
    ],
    [["tail"], []],
    [
      ["tail", "--after", seededUlid(1)],
      [2, 3, 4, 5, 6],
    ],
    [["export"], [1, 2, 3, 4, 5, 6]],
    [["show", seededUlid(7)], []],
    [["show", seededId(7)], []],
  ] as const) {
    const { code, stdout, stderr } = await cliHere(["signals", ...args, "--data", dataDir]);
    expect([args, code, stderr]).toEqual([args, 1, says]);
    expect(linesOf(stdout).map(({ id }) => id)).toEqual(printed.map(seededUlid));
  }
  const file = join(temporaryFolder(), "signals.csv");
  const output = ["--format", "csv", "--output", file, "--data", dataDir];
  expect(await cliHere(["signals", "export", ...output])).toMatchObject({ code: 1, stderr: says });
  expect(existsSync(file)).toBe(false);
  expect(await idsOf(["tail", "--after", seededUlid(7)], dataDir)).toEqual(seeded(8, 9));
});

describe("show", () => {
  test("finds a signal by either id, with its metadata formatted and its numbers whole", async () => {
    const { dataDir, path, keyId, key } = await seed({ signals: 2 });
    editSignals(path, [
      "UPDATE signals SET signal_time = 9007199254740991, metadata = ? WHERE seq = 2",
      '{"a":{"b":[1.00000000000000000001,"x:{y"],"c":{},"d":[]}}',
    ]);
    const text = await run(["show", seededUlid(2)], dataDir);
    expect(text).toBe(`id                ${seededUlid(2)}
desk              alpha
received_at       2023-11-14T22:13:20.002Z (1700000000002)
source            venue_2
type              crypto
symbol            BTC/USDT
side              open
direction         -
price             0.5
quantity          -
signal_time       9007199254740991
client_signal_id  ${seededId(2)}
key               seed (…${key.slice(-4)}), ${keyId}
metadata
{
  "a": {
    "b": [
      1.00000000000000000001,
      "x:{y"
    ],
    "c": {},
    "d": []
  }
}
`);
    expect(await run(["show", seededId(2)], dataDir)).toBe(text);
    expect(linesOf(await run(["show", seededId(1), "--json"], dataDir))).toMatchObject([
      { id: seededUlid(1) },
    ]);
  });

  test("has both desks' signals with one client_signal_id, unless a desk is named", async () => {
    const { dataDir } = await varied();
    const of = async (...args: string[]) =>
      linesOf(await run(["show", seededId(1), "--json", ...args], dataDir)).map(({ id }) => id);
    expect(await of()).toEqual([1, 7].map(idAt));
    expect(await of("--desk", "beta")).toEqual([idAt(7)]);
    const { stderr } = await cliHere(["signals", "show", seededId(1), "--data", dataDir]);
    expect(stderr).toBe("2 signals have this id: name one's desk with --desk.\n");
  });

  test("escapes hidden characters in JSON on a terminal", async () => {
    const { dataDir, path } = await seed({ signals: 1 });
    editSignals(path, ["UPDATE signals SET metadata = ?", '{"a":"\u009b31m\u202e"}']);
    for (const args of [["show", seededUlid(1)], ["list", "--json"], ["export"]]) {
      const text = await onTerminal(["signals", ...args, "--data", dataDir]);
      expect(text).not.toMatch(/[\u009b\u202e]/);
      expect(text).toContain("\\u009b31m\\u202e");
    }
  });

  test("formats JSON of any shape without changing it", () => {
    const strings = JSON.stringify('"\\\n{[,:]}'.repeat(5_000));
    for (const json of ["{}", '{ "a" :\n[ ] }', `{"x":[${strings},-1e5,true,null,[[{}]]]}`]) {
      const pretty = prettyJson(json);
      expect(JSON.parse(pretty)).toEqual(JSON.parse(json));
      expect(pretty).toBe(JSON.stringify(JSON.parse(json), null, 2).replace("-100000", "-1e5"));
    }
  });
});

/** A `tail` that runs until it is stopped, and the ids that it has printed. */
function startTail(args: readonly string[], dataDir: string) {
  const child = spawn(["signals", "tail", ...args, "--data", dataDir], {});
  let text = "";
  const read = (async () => {
    for await (const chunk of child.stdout) text += Buffer.from(chunk).toString();
  })();
  const ids = () => linesOf(text.slice(0, text.lastIndexOf("\n") + 1)).map(({ id }) => id);
  return {
    ids,
    until: async (count: number) => {
      while (ids().length < count && child.exitCode === null) await Bun.sleep(20);
    },
    stop: async (name: NodeJS.Signals = "SIGINT") => {
      child.kill(name);
      await read;
      return { code: await child.exited, stderr: await new Response(child.stderr).text() };
    },
  };
}

async function send(url: string, key: string, fields: object = {}): Promise<string> {
  const { status, text, body } = await post(url, key, fields);
  expect({ status, text }).toMatchObject({ status: 201 });
  return String(body["id"]);
}

describe("tail", () => {
  test("has the latest in the order of storage, or all after an id", async () => {
    const { dataDir } = await seed({ signals: 2_500 });
    const all = seeded(1, 2_500);
    const from = (first: number) => all.slice(first - 1);
    expect(await idsOf(["tail"], dataDir)).toEqual(from(2_491));
    expect(await idsOf(["tail", "--limit", "2300"], dataDir)).toEqual(from(201));
    expect(await idsOf(["tail", "--limit", "9999"], dataDir)).toEqual(from(1));
    expect(await idsOf(["tail", "--limit", "0"], dataDir)).toEqual([]);
    expect(await idsOf(["tail", "--after", seededUlid(2_498)], dataDir)).toEqual(from(2_499));
    expect(await idsOf(["tail", "--after", seededUlid(100)], dataDir)).toEqual(from(101));
    expect(await idsOf(["tail", "--after", seededUlid(2_500)], dataDir)).toEqual([]);
    const unknown = await cliHere(["signals", "tail", "--after", UNKNOWN_ID, "--data", dataDir]);
    expect(unknown).toMatchObject({ code: 0, stdout: "" });
    expect(unknown.stderr).toContain(`No stored signal has the id ${UNKNOWN_ID}`);
  });

  test("is NDJSON in a pipe and a table on a terminal, where Ctrl-C ends it with code 0", async () => {
    const { dataDir } = await seed({ signals: 3 });
    expect(linesOf(await run(["tail"], dataDir))).toHaveLength(3);
    const follow = async (...flags: string[]): Promise<string> => {
      const args = ["signals", "tail", "--follow", "--data", dataDir];
      const tail = startOnTerminal([...args, ...flags]);
      await tail.showed(new RegExp(seededUlid(3)));
      tail.press(CTRL_C);
      const { code, shown } = await tail.ended();
      expect(code).toBe(0);
      return shown;
    };
    const table = await follow();
    expect(table).toMatch(/^RECEIVED \(UTC\) /);
    expect([...table.matchAll(/01HF7\d{21}/g)].map(([id]) => id)).toEqual(seeded(1, 3));
    expect(await follow("--json")).toStartWith('{"id":"01HF7');
  });

  test("follows without a gap or a repetition across restarts of the server and of itself", async () => {
    const first = await startServe();
    const { dataDir } = first;
    const { key } = await mintKey(dataDir);
    const sent = [await send(first.url, key)];
    const load = async (url: string, until: () => boolean) => {
      while (!until()) {
        const batch = Array.from({ length: 20 }, () => send(url, key));
        sent.push(...(await Promise.all(batch)));
      }
    };
    const one = startTail(["--follow"], dataDir);
    await one.until(1);
    await load(first.url, () => one.ids().length > 50);
    first.kill("SIGTERM");
    expect(await first.exited, first.output.stderr).toBe(0);
    const second = await startServe([], { dataDir });
    const printed = one.ids().length;
    await load(second.url, () => one.ids().length > printed + 50);
    expect(await one.stop()).toEqual({ code: 0, stderr: "" });
    const seen = one.ids();
    await load(second.url, () => sent.length > seen.length + 50);
    const other = startTail(["--follow", "--after", seen.at(-1) ?? ""], dataDir);
    const target = sent.length + 100;
    await load(second.url, () => sent.length >= target);
    await other.until(sent.length - seen.length);
    expect(await other.stop("SIGTERM")).toEqual({ code: 0, stderr: "" });
    expect([...seen, ...other.ids()]).toEqual(sent.toSorted());
  });

  test("goes on after a restore, and --after works with an id that the restore removed", async () => {
    const first = await startServe();
    const { dataDir } = first;
    const { key } = await mintKey(dataDir);
    const kept = await send(first.url, key);
    const backup = join(temporaryFolder(), "backup.db");
    expect((await cliHere(["backup", backup, "--data", dataDir])).code).toBe(0);
    const tail = startTail(["--follow"], dataDir);
    const lost = await send(first.url, key, { client_signal_id: "again" });
    await tail.until(2);
    first.kill("SIGTERM");
    await first.exited;
    expect((await cliHere(["restore", backup, "--force", "--data", dataDir])).code).toBe(0);
    const second = await startServe([], { dataDir });
    const again = await send(second.url, key, { client_signal_id: "again" });
    await tail.until(3);
    expect(await tail.stop()).toEqual({ code: 0, stderr: "" });
    expect(tail.ids()).toEqual([kept, lost, again]);
    expect(await idsOf(["tail", "--after", lost], dataDir)).toEqual([again]);
  });

  test("prints what a restored database stores under lower ids than before", async () => {
    const { dataDir, path, keyId } = await seed({ signals: 5 });
    const tail = startTail(["--follow"], dataDir);
    await tail.until(5);
    edit(path, "DELETE FROM signals WHERE seq > 2");
    await Bun.sleep(1_500);
    const lower = { id: seededUlid(3), desk_id: 1, key_id: keyId, received_at: 1 };
    const fields = { source: "venue_1", type: "stock", symbol: "AAPL", side: "open" } as const;
    const none = { client_signal_id: null, direction: null, price: null, quantity: null } as const;
    const hash = hashOfRow({ ...lower, ...fields, ...none, signal_time: null, metadata: null });
    edit(path, [
      `INSERT INTO signals (seq, id, desk_id, key_id, received_at, source, type, symbol, side, hash)
       VALUES (3, ?, 1, ?, 1, 'venue_1', 'stock', 'AAPL', 'open', ?)`,
      lower.id,
      keyId,
      hash,
    ]);
    await tail.until(6);
    await tail.stop();
    expect(tail.ids()).toEqual([1, 2, 3, 4, 5, 3].map(seededUlid));
  });

  test("ends in silence when its reader has gone, even if no more signals come", async () => {
    const { dataDir } = await seed({ signals: 3 });
    const program = signalbox.join(" ");
    const command = `{ ${program} signals tail --follow --data ${dataDir}; echo "code $?" >&2; } | head -n 1`;
    const child = Bun.spawn(["sh", "-c", command], { stdio: ["ignore", "pipe", "pipe"] });
    expect(await new Response(child.stderr).text()).toBe("code 0\n");
    expect(linesOf(await new Response(child.stdout).text())).toHaveLength(1);
  });
});

describe("export", () => {
  test("has all signals in the order of storage, as the console's files have them", async () => {
    const { dataDir, path } = await seed({ signals: 2_500 });
    editSignals(path, "UPDATE signals SET symbol = '=1+1' WHERE seq = 2");
    const ndjson = await run(["export"], dataDir);
    expect(linesOf(ndjson).map(({ id }) => id)).toEqual(seeded(1, 2_500));
    expect(ndjson).toContain('"symbol":"=1+1"');
    const csv = (await run(["export", "--format", "csv"], dataDir)).split("\r\n");
    expect(csv).toHaveLength(2_502);
    expect(csv[0]).toStartWith("id,desk,received_at,received_at_utc,source,type,symbol,side,");
    expect(csv[2]).toContain(`,"'=1+1",`);
  });

  test("makes a file that only its user can read, and replaces none", async () => {
    const { dataDir, path } = await seed({ signals: 3 });
    const folder = temporaryFolder();
    const file = join(folder, "signals.ndjson");
    const args = ["signals", "export", "--output", file, "--data", dataDir];
    const { code, stdout, stderr } = await cliHere(args);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: "",
      stderr: `${file}: 3 signals.\n`,
    });
    expect(readFileSync(file, "utf8")).toBe(await run(["export"], dataDir));
    expect((await Bun.file(file).stat()).mode & 0o777).toBe(0o600);
    const before = readFileSync(path);
    for (const existing of [file, path, dataDir]) {
      const again = ["signals", "export", "--output", existing, "--data", dataDir];
      await expectRefusal(again, `${existing} exists already, and was left as it is`);
    }
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(readdirSync(folder)).toEqual(["signals.ndjson"]);
  });

  test.each(["SIGINT", "SIGTERM", "SIGKILL"] as const)("leaves no file after %s", async (name) => {
    const { dataDir } = await seed({ signals: 200_000 });
    const folder = temporaryFolder();
    const file = join(folder, "signals.csv");
    const child = spawn(["signals", "export", "--output", file, "--data", dataDir], {});
    while (readdirSync(folder).length === 0) await Bun.sleep(1);
    const [partial = ""] = readdirSync(folder);
    expect(partial).toMatch(/^\.signals\.csv\.[0-9a-f]{16}\.signalbox-partial$/);
    child.kill(name);
    const isKilled = name === "SIGKILL";
    expect(await child.exited).toBe(isKilled ? 137 : 1);
    const says = `signalbox: The export was stopped: ${file} was not written.\n`;
    expect(await new Response(child.stderr).text()).toBe(isKilled ? "" : says);
    expect(readdirSync(folder)).toEqual(isKilled ? [partial] : []);
  });

  test("leaves no file when it fails", async () => {
    const { dataDir, path } = await seed({ signals: 20_000 });
    const folder = temporaryFolder();
    const args = ["signals", "export", "--output", join(folder, "x.csv"), "--data", dataDir];
    expect((await cliHere([...args, "--desk", "nobody"])).code).toBe(1);
    writeFileSync(path, readFileSync(path).subarray(0, 2_000_000));
    expect((await cliHere(args)).code).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("shows its progress on a terminal", async () => {
    const { dataDir } = await seed({ signals: 50_000 });
    const file = join(temporaryFolder(), "signals.csv");
    const text = await onTerminal(["signals", "export", "--output", file, "--data", dataDir]);
    expect(text).toMatch(/export .*\d+%, \d+ signals/);
    expect(text.trimEnd()).toEndWith(`${file}: 50,000 signals.`);
  });
});

test("a reader that is slow keeps no read transaction open", async () => {
  const { dataDir, path, keyId } = await seed({ signals: 50_000 });
  const child = spawn(["signals", "export", "--data", dataDir], {});
  // The pipe is full by then, and the export waits for its reader.
  await Bun.sleep(2_000);
  const db = new Database(path);
  onCleanup(() => db.close());
  db.run("UPDATE api_keys SET last_used_at = 1 WHERE id = ?", [keyId]);
  expect(db.query("PRAGMA wal_checkpoint(TRUNCATE)").get()).toMatchObject({ busy: 0 });
  expect(linesOf(await new Response(child.stdout).text())).toHaveLength(50_000);
  expect(await child.exited).toBe(0);
});

test("reading changes nothing in a data folder, and leaves no file in it", async () => {
  const { dataDir, path } = await seed({ signals: 100 });
  const state = () => ({ files: readdirSync(dataDir), bytes: Bun.hash(readFileSync(path)) });
  const before = state();
  for (const args of ["list", `show ${seededUlid(1)}`, "tail", "export --format csv"]) {
    await run(args.split(" "), dataDir);
  }
  expect(state()).toEqual(before);
});
