/** All rows, by name. */
import { feedRow } from "./feed-row.ts";
import { diskRow, memoryRow, startRow } from "./footprint-rows.ts";
import { duplicatesRow, invalidRow, newRow, unauthorisedRow } from "./load-rows.ts";
import type { RowName } from "./names.ts";
import { fastifyRow, postgresqlRow, redisRow } from "./peer-rows.ts";
import type { Row } from "./row.ts";
import { slowDiskRow } from "./slow-disk-row.ts";
import { v4Row, v7Row } from "./stored-rows.ts";

export const rowsByName: Readonly<Record<RowName, Row>> = {
  new: newRow,
  v7: v7Row,
  v4: v4Row,
  postgresql: postgresqlRow,
  fastify: fastifyRow,
  redis: redisRow,
  duplicates: duplicatesRow,
  "401": unauthorisedRow,
  "422": invalidRow,
  "slow-disk": slowDiskRow,
  feed: feedRow,
  memory: memoryRow,
  start: startRow,
  disk: diskRow,
};
