/** The row that compares Signalbox with PostgreSQL. */
import { note } from "../tools.ts";
import { findPostgresql, measurePostgresql, POSTGRESQL_CLIENTS } from "../peers/postgresql.ts";
import { loadOf } from "./round.ts";
import type { Row } from "./row.ts";

const RATIO_MIN = 1.2;

export const postgresqlRow: Row = {
  load: `against PostgreSQL, prepared \`INSERT … ON CONFLICT\`, ${POSTGRESQL_CLIENTS} clients of pgbench, UUID v4`,
  goal: `with as many \`--stored\` signals: at least ${RATIO_MIN} times its rate`,
  lacks: () => findPostgresql().missing,
  async measure(round) {
    const { place } = round;
    const stored = place.stored?.v4 ?? null;
    const ours = await round.measure("signalbox", loadOf("v4"), stored);
    const { seconds, quick } = place.options;
    const theirs = await measurePostgresql(place, { seconds, quick, rows: stored?.signals ?? 0 });
    note(`  ${theirs.version}: ${Math.round(theirs.rate)}/s`);
    const goal = stored === null ? {} : { atLeast: RATIO_MIN };
    return [
      [
        { name: "signals/s ÷ PostgreSQL's", unit: "×", ...goal },
        ours.throughput_per_s / theirs.rate,
      ],
      [{ name: theirs.version, unit: "/s" }, theirs.rate],
    ];
  },
};
