/** The rows that compare Signalbox with what others would build, or use instead. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { note } from "../tools.ts";
import { findPostgresql, measurePostgresql, POSTGRESQL_CLIENTS } from "../peers/postgresql.ts";
import { findRedis, measureRedis, REDIS_CLIENTS } from "../peers/redis.ts";
import { FULL, type Round } from "./round.ts";
import type { Figure, Result, Row } from "./row.ts";

const FASTIFY_RATIO_MIN = 15;
const REDIS_RATIO_MIN = 0.8;
const POSTGRESQL_RATIO_MIN = 2;

const fastify = ratio("Fastify's", FASTIFY_RATIO_MIN);

export const fastifyRow: Row = {
  load: "against Fastify with better-sqlite3, a commit a request, 256 connections",
  goal: `at least ${FASTIFY_RATIO_MIN} times`,
  lacks({ place }) {
    const isInstalled = existsSync(join(place.tools.fastifyFolder, "node_modules"));
    if (isInstalled || Bun.which("npm") !== null) return null;
    return "npm is missing; install it with: apt-get install npm";
  },
  async measure(round) {
    const [ours, theirs] = await round.pair(FULL, "fastify");
    return [[fastify, ours.throughput_per_s / theirs.throughput_per_s]];
  },
};

export const redisRow: Row = {
  load: `against Redis, \`XADD\` with \`appendfsync always\`, ${REDIS_CLIENTS} clients`,
  goal: `at least ${REDIS_RATIO_MIN} of its rate`,
  lacks: () => findRedis().missing,
  measure: (round) => beside(round, "Redis", REDIS_RATIO_MIN, measureRedis),
};

export const postgresqlRow: Row = {
  load: `against PostgreSQL, prepared \`INSERT … ON CONFLICT\`, ${POSTGRESQL_CLIENTS} clients of pgbench`,
  goal: `at least ${POSTGRESQL_RATIO_MIN} times its rate`,
  lacks: () => findPostgresql().missing,
  measure: (round) => beside(round, "PostgreSQL", POSTGRESQL_RATIO_MIN, measurePostgresql),
};

function ratio(whose: string, atLeast: number): Figure {
  return { name: `signals/s ÷ ${whose}`, unit: "×", atLeast };
}

async function beside(
  round: Round,
  name: string,
  atLeast: number,
  measurePeer: (folder: string, seconds: number) => Promise<{ version: string; rate: number }>,
): Promise<Result[]> {
  const { folder, options } = round.place;
  const ours = await round.measure("signalbox", FULL);
  const { version, rate } = await measurePeer(folder, options.seconds);
  note(`  ${version}: ${Math.round(rate)}/s`);
  return [
    [ratio(`${name}'s`, atLeast), ours.throughput_per_s / rate],
    [{ name: version, unit: "/s" }, rate],
  ];
}
