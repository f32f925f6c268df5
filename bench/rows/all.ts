/** All rows, by name. */
import { feedRow } from "./feed-row.ts";
import { diskRow, memoryRow, startRow } from "./footprint-rows.ts";
import type { RowName } from "./names.ts";
import { newRow } from "./new-row.ts";
import { postgresqlRow } from "./postgresql-row.ts";
import type { Row } from "./row.ts";
import { scaleRow } from "./scale-row.ts";
import { v4Row, v7Row } from "./stored-rows.ts";

export const rowsByName: Readonly<Record<RowName, Row>> = {
  new: newRow,
  v7: v7Row,
  v4: v4Row,
  postgresql: postgresqlRow,
  scale: scaleRow,
  feed: feedRow,
  memory: memoryRow,
  start: startRow,
  disk: diskRow,
};
