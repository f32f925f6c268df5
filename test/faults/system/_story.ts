/** Runs the commands of "A new server" in docs/install.md, as they are, on two servers. */
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder, until } from "../../kit/setup.ts";
import { startPebble } from "../kit/pebble.ts";
import { HOST, rentServer, type Server } from "./_server.ts";

/** The page's blocks, each of which is run or left out once, in their order. */
async function readStory() {
  const [, part = ""] = (await Bun.file("docs/install.md").text()).split("\n## A new server\n");
  const [story = ""] = part.split("\n## ");
  const left = [...story.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = ""]) =>
    block.replaceAll("signals.example.com", HOST),
  );
  /** Returns the next block, which must have this text. */
  const next = (text: string): string => {
    const block = left.shift() ?? "";
    expect(block).toContain(text);
    return block;
  };
  return { left, next };
}

/** `file`: the package. */
export async function tellStory(file: string): Promise<void> {
  const story = await readStory();
  const elsewhere = temporaryFolder();
  const first = await rentServer(file, elsewhere);
  const pebble = await startPebble(90 * 24 * 3_600, first.system.network);
  const root = await pebble.root();
  await first.trust(root, pebble);

  await first.run(story.next("apt install ./signalbox"));
  await first.run(story.next("ReadWritePaths="));
  first.shortcut(pebble);
  await first.run(story.next("SIGNALBOX_ACME_DOMAIN="));
  await first.run(story.next("serve --check"));
  await first.ready();
  expect(await first.run(story.next("healthcheck"))).toContain("openapi: 3.1");

  await first.run(story.next("desk create"));
  const send = story.next('"client_signal_id":"first"');
  const { id } = JSON.parse(await first.run(send)) as { id: string };

  story.next("apt install prometheus");
  await first.installPrometheus();
  await first.run(story.next("promtool check"));
  const up = "promtool query instant http://127.0.0.1:9090 up || true";
  await first.until(up, (shown) => shown.includes("=> 1"));
  const alerts = story.next("promtool query");
  // Not that none is shown: where other tests fill this machine's disk, SignalboxDiskFilling fires.
  const down = 'alertname="SignalboxDown", alertstate="firing"';
  expect(await first.run(alerts)).not.toContain(down);
  await first.run("sudo systemctl stop signalbox");
  await first.until(alerts, (shown) => shown.includes(down));
  await first.run("sudo systemctl start signalbox");
  await first.until(alerts, (shown) => !shown.includes("SignalboxDown"));

  // The reader is killed, and goes on.
  await first.run(story.next("mkdir reader"));
  const read = story.next("python3 reader.py");
  await first.watch(read, `ordered BTC/USDT ${id}\n`);
  const second = JSON.parse(await first.run(send.replace('"first"', '"second"'))) as { id: string };
  await first.watch(read, `ordered BTC/USDT ${second.id}\n`);
  expect(orders(first)).toEqual([id, second.id]);

  // The machine is lost after a backup with both.
  const look = story.next("ls -l /mnt/elsewhere");
  await until(() => newestIn(elsewhere) === second.id);
  expect(await first.run(look)).toContain("Nothing needs attention.");
  const next = await rentServer(file, elsewhere, first.system);
  first.system.lose();
  await next.trust(root, pebble);
  await next.run(story.next("signalbox restore"));
  await next.run(story.next("systemctl start"));
  await next.ready();
  expect(await next.run(story.next("key list"))).toMatch(/bot-7[^]*orders/);
  expect(story.left).toEqual([]);

  // Bot and reader go on with what they have.
  await first.moveHome(next);
  expect(JSON.parse(await next.run(send))).toEqual({ id, deduped: true });
  const third = JSON.parse(await next.run(send.replace('"first"', '"third"'))) as { id: string };
  await next.watch(read, `ordered BTC/USDT ${third.id}\n`);
  expect(orders(next)).toEqual([id, second.id, third.id]);
}

/** What the reader did, in its order. */
function orders(server: Server): string[] {
  const database = new Database(server.path("home/admin/reader/orders.db"));
  const rows = database.query<{ id: string }, []>("SELECT id FROM orders ORDER BY rowid").all();
  database.close();
  return rows.map(({ id }) => id);
}

/** The newest signal of the newest whole backup; null without one. */
function newestIn(folder: string): string | null {
  const name = readdirSync(folder)
    .filter((file) => file.endsWith(".db"))
    .toSorted()
    .at(-1);
  try {
    using database = new Database(join(folder, name ?? ""), { readonly: true });
    const query = database.query<{ id: string | null }, []>("SELECT max(id) AS id FROM signals");
    return query.get()?.id ?? null;
  } catch {
    return null;
  }
}
