/** Three servers behind HAProxy, on three PostgreSQL under Patroni: what bots and readers notice of faults. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../../kit/setup.ts";
import { Pool } from "../../../src/store/postgres/pool.ts";
import { isFull, report } from "../kit/faults.ts";
import { type Bots, type Downtime, downtimeIn, startBots } from "./_bots.ts";
import { type Fault, faults } from "./_faults.ts";
import { type Cluster, startCluster } from "./_postgresql.ts";
import { startServers } from "./_servers.ts";

setDefaultTimeout(isFull ? 2_400_000 : 300_000);

/** Before a fault, and after it, so that each fault meets a service under load. */
const LOAD_MS = 3_000;

/** What is stored of a signal that was acknowledged or read. */
interface Row {
  readonly id: string;
  readonly client_signal_id: string;
}

async function rowsOf({ url }: Cluster): Promise<Row[]> {
  const pool = new Pool(url, { max: 1 });
  try {
    return [
      ...(await pool.use((pg) => pg<Row[]>`SELECT id, client_signal_id FROM signals ORDER BY seq`)),
    ];
  } finally {
    await pool.close();
  }
}

/** Checks every answer and everything that was read so far. Returns how many answers. */
async function expectKept(cluster: Cluster, bots: Bots): Promise<number> {
  const [sent, read] = [bots.sent(), bots.read()];
  const rows = await rowsOf(cluster);
  const stored = new Map(rows.map((row) => [row.client_signal_id, row.id]));
  expect(stored.size, "client_signal_ids, each stored once").toBe(rows.length);
  const lost = sent.filter(({ clientId, id }) => stored.get(clientId) !== id);
  expect(lost, "acknowledged signals that are missing").toEqual([]);
  const ids = rows.map(({ id }) => id);
  expect(ids, "ids in the order of storage").toEqual(ids.toSorted());
  expect(read, "what the feed gave").toEqual(ids.slice(0, read.length));
  // The reader goes on, too.
  await until(() => bots.read().length >= rows.length, 100);
  return sent.length;
}

/** `CLUSTER_FAULT`: only those whose names have this text, once each. */
function chosenFaults(): Fault[] {
  const wanted = process.env["CLUSTER_FAULT"];
  if (wanted !== undefined) return faults.filter(({ name }) => name.includes(wanted));
  if (!isFull) return faults.filter(({ isQuick }) => isQuick === true);
  return faults.flatMap((fault) => Array.from({ length: fault.times }, () => fault));
}

test("acknowledged signals survive faults of the cluster, and the feed has them all in order", async () => {
  const cluster = await startCluster("sbc");
  const servers = await startServers(cluster.network, cluster.url);
  const bots = await startBots(servers);
  const downtimes = new Map<string, Downtime[]>();
  for (const { name, make } of chosenFaults()) {
    await cluster.settled();
    await Bun.sleep(LOAD_MS);
    const since = Date.now();
    await make(cluster, servers);
    await cluster.settled();
    await servers.ready();
    await bots.allSince(Date.now());
    downtimes.set(name, [...(downtimes.get(name) ?? []), downtimeIn(bots.sent(), since)]);
    await expectKept(cluster, bots);
  }
  await bots.stop();
  const acknowledged = await expectKept(cluster, bots);
  for (const [name, found] of downtimes) report(name, found.length, describe(found));
  const times = [...downtimes.values()].flat().length;
  report("all faults of the cluster", times, `${acknowledged} acknowledged signals, none lost`);
});

function seconds(ms = 0): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function describe(found: readonly Downtime[]): string {
  const all = found.map((one) => one.all).toSorted((a, b) => a - b);
  const longest = Math.max(...found.map(({ one }) => one));
  return `downtime median ${seconds(all[all.length >> 1])}, longest ${seconds(all.at(-1))}; a bot waited for at most ${seconds(longest)}`;
}
