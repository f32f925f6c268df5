/** All rows, by name. */
import { diskRow, memoryRow } from "./footprint-rows.ts";
import { p99Row, singleRow } from "./latency-rows.ts";
import { duplicatesRow, invalidRow, newRow, unauthorisedRow } from "./load-rows.ts";
import type { RowName } from "./names.ts";
import { openRow } from "./open-row.ts";
import { fastifyRow, postgresqlRow, redisRow } from "./peer-rows.ts";
import type { Row } from "./row.ts";
import { slowDiskRow } from "./slow-disk-row.ts";
import { startRow, storedRow } from "./stored-rows.ts";

export const rowsByName: Readonly<Record<RowName, Row>> = {
  new: newRow,
  stored: storedRow,
  p99: p99Row,
  open: openRow,
  single: singleRow,
  duplicates: duplicatesRow,
  "401": unauthorisedRow,
  "422": invalidRow,
  fastify: fastifyRow,
  redis: redisRow,
  postgresql: postgresqlRow,
  "slow-disk": slowDiskRow,
  memory: memoryRow,
  disk: diskRow,
  start: startRow,
};
