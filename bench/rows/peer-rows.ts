/** The rows that compare Signalbox with what others would build, or use instead. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Figures } from "../figures.ts";
import { note } from "../tools.ts";
import { findPostgresql, measurePostgresql, POSTGRESQL_CLIENTS } from "../peers/postgresql.ts";
import { findRedis, measureRedis, REDIS_CLIENTS } from "../peers/redis.ts";
import { loadOf } from "./round.ts";
import type { Figure, Result, Row } from "./row.ts";

const POSTGRESQL_RATIO_MIN = 1.2;

export const postgresqlRow: Row = {
  load: `against PostgreSQL, prepared \`INSERT … ON CONFLICT\`, ${POSTGRESQL_CLIENTS} clients of pgbench, UUID v4`,
  goal: `with as many \`--stored\` signals: at least ${POSTGRESQL_RATIO_MIN} times its rate`,
  lacks: () => findPostgresql().missing,
  async measure(round) {
    const { place } = round;
    const stored = place.stored?.v4 ?? null;
    const ours = await round.measure("signalbox", loadOf("v4"), { stored });
    const { seconds, quick } = place.options;
    const theirs = await measurePostgresql(place, { seconds, quick, rows: stored?.signals ?? 0 });
    const ratio: Figure = { name: "signals/s ÷ PostgreSQL's", unit: "×" };
    const goal = stored === null ? {} : { atLeast: POSTGRESQL_RATIO_MIN };
    return compare({ ...ratio, ...goal }, ours, theirs);
  },
};

export const fastifyRow: Row = {
  load: "against Fastify with better-sqlite3, a commit per request, 256 connections",
  goal: "stated",
  lacks({ place }) {
    const isInstalled = existsSync(join(place.tools.fastifyFolder, "node_modules"));
    if (isInstalled || Bun.which("npm") !== null) return null;
    return "npm is missing; install it with: apt-get install npm";
  },
  async measure(round) {
    const [ours, theirs] = await round.pair(loadOf("v7"), "fastify");
    return [
      [
        { name: "signals/s ÷ Fastify's", unit: "×" },
        ours.throughput_per_s / theirs.throughput_per_s,
      ],
    ];
  },
};

export const redisRow: Row = {
  load: `against Redis, \`XADD\` with \`appendfsync always\`, ${REDIS_CLIENTS} clients`,
  goal: "stated",
  lacks: () => findRedis().missing,
  async measure(round) {
    const { folder, options } = round.place;
    const ours = await round.measure("signalbox", loadOf("v7"));
    const theirs = await measureRedis(folder, options.seconds);
    return compare({ name: "signals/s ÷ Redis's", unit: "×" }, ours, theirs);
  },
};

function compare(
  ratio: Figure,
  ours: Figures,
  { version, rate }: { version: string; rate: number },
): Result[] {
  note(`  ${version}: ${Math.round(rate)}/s`);
  return [
    [ratio, ours.throughput_per_s / rate],
    [{ name: version, unit: "/s" }, rate],
  ];
}
