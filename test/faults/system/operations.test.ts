/** Runs the commands of the operators' pages, in their order, against servers from the executable. */
import { afterAll, expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { makeCertificate, writeCertificate } from "../../kit/certificates.ts";
import { freePort, mintKey } from "../../kit/cli.ts";
import { startLoad } from "../../kit/load.ts";
import { post, query } from "../../kit/setup.ts";
import { expectKept, report } from "../kit/faults.ts";
import { commandsOf, connect, createMachine, type Machine } from "../kit/machine.ts";

const pages = ["operations.md", "runbook.md", "upgrade.md"];
const SIGNALS = 200;
const ran = new Set<string>();

/** A machine whose service runs, and has a desk with a key. */
async function startMachine(settings: Record<string, string> = {}) {
  const port = await freePort();
  const machine = await createMachine({
    SIGNALBOX_LISTEN: `127.0.0.1:${port}`,
    SIGNALBOX_CONSOLE_LISTEN: `127.0.0.1:${await freePort()}`,
    ...settings,
  });
  const { key } = await mintKey(machine.dataDir);
  await machine.run("systemctl start signalbox");
  return { machine, key, url: `http://127.0.0.1:${port}`, port };
}

/** Runs lines as a person would: `doctor` may find something, and `serve` runs until it has done its work. */
async function runAll(machine: Machine, lines: readonly string[]): Promise<void> {
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) {
    ran.add(line);
    if (/^signalbox serve (?!--check)|--every/.test(line)) await runServer(machine, line);
    else if (/ doctor /.test(line)) await machine.run(`${line} || [ $? = 1 ]`);
    else await machine.run(line);
  }
}

async function runServer(machine: Machine, line: string): Promise<void> {
  await machine.run("systemctl stop signalbox");
  for (const name of readdirSync(machine.path("backup"))) rmSync(machine.path(`backup/${name}`));
  const until = line.includes("command") ? '"backup sent"' : '"backup made"';
  await (await machine.start(line, until)).stop();
  await machine.run("systemctl start signalbox");
}

function startBots(url: string, key: string) {
  const common = { url, key, retry: true, pauseAfter503Ms: 20 };
  const loads = [
    startLoad({ ...common, prefix: "busy", connections: 8, reuse: "mixed" }),
    startLoad({ ...common, prefix: "pausing", connections: 4, reuse: "keep", pauseMs: 50 }),
  ];
  return {
    more: () => Promise.all(loads.map((load) => load.more(SIGNALS / loads.length, 201))),
    end: async () => (await Promise.all(loads.map((load) => load.end()))).flat(),
  };
}

test("health, backups, a command that sends them away, and a restore", async () => {
  const { machine, key, url } = await startMachine();
  expect((await post(url, key)).status).toBe(201);
  await runAll(machine, await commandsOf("operations.md"));
  expect(readdirSync(machine.path("mnt/elsewhere"))).toEqual([
    expect.stringMatching(/^signalbox-\w+\.db$/),
  ]);
  expect((await post(url, key)).status).toBe(201);
});

test("the commands of the runbook", async () => {
  const { machine, key, url } = await startMachine();
  const id = { client_signal_id: "one" };
  await post(url, key, id);
  // The log has a warning and a rejected request to look for.
  await post(url, key, { ...id, symbol: "OTHER" });
  await post(url, "sbk_unknown", id);
  const { certFile, keyFile } = writeCertificate(
    machine.path("etc/signalbox"),
    await makeCertificate("signals"),
  );
  expect(existsSync(certFile) && existsSync(keyFile)).toBe(true);
  await machine.run("signalbox backup /backup/signalbox-20260101T000000Z.db");
  const folder = machine.path("backup");
  const settings = machine.path("etc/signalbox/signalbox.env");
  writeFileSync(settings, `SIGNALBOX_BACKUP_DIR=${folder}\n`);
  while (!machine.log().includes('"level":"warn"')) await Bun.sleep(10);
  const lines = await commandsOf("runbook.md");
  // A server that is stopped cannot say its settings.
  await machine.run("systemctl stop signalbox");
  const doctor = lines.find((line) => line.includes(" doctor "));
  expect(await machine.run(`${doctor} || [ $? = 1 ]`)).toContain(
    `There is no backup of the last 2h in ${folder}`,
  );
  await machine.run("systemctl start signalbox");
  await runAll(machine, lines);
  expect((await post(url, key, id)).status).toBe(200);
});

test("an upgrade and the way back under load lose nothing and store nothing twice", async () => {
  const { machine, key, url } = await startMachine();
  const bots = startBots(url, key);
  await bots.more();
  await runAll(machine, await commandsOf("upgrade.md", "## Upgrading"));
  await bots.more();
  const back = await commandsOf("upgrade.md", "## Going back");
  const restoring = back.indexOf("systemctl stop signalbox");
  await runAll(machine, back.slice(0, restoring));
  await bots.more();
  const results = await bots.end();
  const kept = expectKept(machine.dataDir, results);
  report("upgrade and way back under load", 2, `${kept} acknowledged signals, each stored once`);
  await runAll(machine, back.slice(restoring));
  expect((await post(url, key)).status).toBe(201);
});

test("a move to another machine loses nothing and stores nothing twice", async () => {
  const { machine: old, key, url, port } = await startMachine();
  // At the same address, as after the change of the DNS record.
  const settings = {
    SIGNALBOX_LISTEN: `127.0.0.1:${port}`,
    SIGNALBOX_CONSOLE_LISTEN: `127.0.0.1:${await freePort()}`,
  };
  const next = await createMachine(settings);
  connect(old, next, "new.example.com");
  const bots = startBots(url, key);
  await bots.more();
  const moving = await commandsOf("upgrade.md", "## Moving to another machine");
  const lost = moving.findIndex((line) => line.includes(" restore "));
  await runAll(old, moving.slice(0, lost));
  await bots.more();
  const results = await bots.end();
  const kept = expectKept(next.dataDir, results);
  const before = query<{ count: number }>(old.dataDir, "SELECT count(*) AS count FROM signals");
  expect(before[0]?.count).toBeGreaterThan(0);
  expect(kept).toBeGreaterThan(before[0]?.count ?? 0);
  report("move to another machine under load", 1, `${kept} acknowledged signals, each stored once`);

  // The new machine is lost, too.
  await next.run("signalbox backup /backup/newest.db");
  await next.run("systemctl stop signalbox");
  const third = await createMachine(settings);
  copyFileSync(next.path("backup/newest.db"), third.path("backup/newest.db"));
  await runAll(third, moving.slice(lost));
  expect(expectKept(third.dataDir, results)).toBe(kept);
});

afterAll(async () => {
  // A page has no command that these tests leave out.
  const written = (await Promise.all(pages.map((page) => commandsOf(page)))).flat();
  expect(written.filter((line) => !ran.has(line))).toEqual([]);
});
