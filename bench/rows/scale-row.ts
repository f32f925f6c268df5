/** The row of `serve --store`: one server and two on one PostgreSQL, and that PostgreSQL by itself. */
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { runClosedLoop } from "../closed-loop.ts";
import type { IdKind, Target } from "../load.ts";
import { type Cluster, findPostgresql, pgbench, withCluster } from "../peers/postgresql.ts";
import { readPeakMemoryMib } from "../proc.ts";
import { answersHttp, freePort, run, type RunningServer, startServer } from "../process.ts";
import { note, type Tools } from "../tools.ts";
import { loadOf, type Place } from "./round.ts";
import type { Row } from "./row.ts";

/** One server ÷ pgbench, with this many signals stored. */
const RATIO_MIN: Readonly<Record<IdKind, number>> = { v7: 2, v4: 1.5 };
/** Two servers ÷ one: they share the cores, with the database and the load. */
const TWO_MIN = 0.75;
/** Each server. */
const MEMORY_MB_MAX = 200;
const WARM_UP_SECONDS = 3;

export const scaleRow: Row = {
  load: "`serve --store` on one PostgreSQL, against prepared `INSERT … ON CONFLICT` of pgbench there",
  goal: `with as many \`--stored\` signals: ${RATIO_MIN.v7} times its rate with UUID v7, ${RATIO_MIN.v4} with v4; two servers ${TWO_MIN} times one; each at most ${MEMORY_MB_MAX} MB`,
  lacks: () => findPostgresql().missing,
  measure: ({ place }) =>
    withCluster(place.folder, place.options.stored, async (cluster, home) => {
      const { seconds, quick, stored } = place.options;
      const one = await startNode(place, cluster, "one");
      await fill(cluster, stored);
      const v7 = await rateOf(place, "v7", [one]);
      const two = await startNode(place, cluster, "two");
      const both = await rateOf(place, "v7", [one, two]);
      const v4 = await rateOf(place, "v4", [one]);
      const theirs = await pgbench(cluster, home, seconds);
      const peaks = [one, two].map(
        ({ running }) => (readPeakMemoryMib(running.pid) * 2 ** 20) / 1e6,
      );
      for (const node of [one, two]) await node.running.stop();
      note(`  pgbench: ${Math.round(theirs.rate)}/s`);
      const isCompared = stored > 0 && !quick;
      return [
        [
          {
            name: "one server, UUID v7 ÷ pgbench",
            unit: "×",
            ...(isCompared && { atLeast: RATIO_MIN.v7 }),
          },
          v7 / theirs.rate,
        ],
        [
          {
            name: "one server, UUID v4 ÷ pgbench",
            unit: "×",
            ...(isCompared && { atLeast: RATIO_MIN.v4 }),
          },
          v4 / theirs.rate,
        ],
        [{ name: "two servers ÷ one", unit: "×", ...(!quick && { atLeast: TWO_MIN }) }, both / v7],
        [{ name: "one server, UUID v7", unit: "/s" }, v7],
        [
          { name: "highest peak memory of a server", unit: "MB", atMost: MEMORY_MB_MAX },
          Math.max(...peaks),
        ],
      ];
    }),
};

interface Node extends Target {
  readonly running: RunningServer;
}

async function startNode(place: Place, { url }: Cluster, name: string): Promise<Node> {
  const { signalbox, serve = signalbox }: Tools = place.tools;
  const store = ["--store", url];
  const dataDir = mkdtempSync(join(place.folder, `${name}-`));
  const port = freePort();
  await run([...signalbox, "desk", "create", "bench", "--if-missing", ...store]);
  const { stdout } = await run([...signalbox, "key", "mint", "--desk", "bench", ...store]);
  const listen = ["--listen", `127.0.0.1:${port}`, "--console-listen", `127.0.0.1:${freePort()}`];
  const running = await startServer(
    [...serve, "serve", ...store, "--data", dataDir, ...listen, "--rate-limit", "0"],
    { isReady: answersHttp(port), logFile: join(place.folder, `${name}.log`) },
  );
  return { running, port, key: stdout.trim() };
}

/** Signals per second of all of them together. */
async function rateOf(
  { tools, options }: Place,
  ids: IdKind,
  nodes: readonly Node[],
): Promise<number> {
  const load = { ...loadOf(ids), connections: loadOf(ids).connections / nodes.length };
  const each = (seconds: number) =>
    Promise.all(nodes.map((node) => runClosedLoop(tools.wrk, node, load, seconds)));
  if (!options.quick) await each(WARM_UP_SECONDS);
  const results = await each(options.seconds);
  const rate = results
    .map(({ requests, duration_us }) => (requests / duration_us) * 1e6)
    .reduce((sum, one) => sum + one, 0);
  note(`  ${nodes.length} on PostgreSQL, UUID ${ids}: ${Math.round(rate)}/s`);
  return rate;
}

/** As the peer's table is filled. `signal_blocks` too, or the server would do that while it is measured. */
async function fill(cluster: Cluster, signals: number): Promise<void> {
  if (signals === 0) return;
  note(`  filling the database of Signalbox with ${signals.toLocaleString("en-US")} rows`);
  const time = "1700000000000";
  // With any hash: nobody reads these rows.
  for (const statement of [
    `INSERT INTO signals SELECT n, base32(${time}) || base32(n) || '000000', 1, (SELECT id FROM api_keys LIMIT 1),
       ${time}, gen_random_uuid()::text, 'venue_2', 'crypto', 'BTC/USDT', 'open', 'long', 64250.5, 0.25,
       1790000000000, '{"take_profit":66000,"stop_loss":63000}', int8send(n) FROM generate_series(1, ${signals}) AS n`,
    `INSERT INTO signal_blocks SELECT n, ${time}, ${time}, 4096 FROM generate_series(0, ${signals} / 4096 - 1) AS n`,
    `UPDATE turn SET seq = ${signals}, last_ms = ${time}`,
    "VACUUM ANALYZE",
    "CHECKPOINT",
  ]) {
    await cluster.ask(statement, "signalbox");
  }
}
