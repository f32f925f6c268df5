/** How a row is added to one with the same key, `kept`, per table: what follows `INSERT INTO … AS kept …`. */
import { greaterOf, lesserOf } from "../dialect.ts";

const sum = (column: string): string => `${column} = kept.${column} + excluded.${column}`;
const latest = (column: string): string =>
  `${column} = ${greaterOf(`kept.${column}`, `excluded.${column}`)}`;
const earliest = (column: string): string =>
  `${column} = ${lesserOf(`kept.${column}`, `excluded.${column}`)}`;
const union = (column: string): string => `${column} = kept.${column} | excluded.${column}`;

const onConflict = (key: string, ...changes: readonly string[]): string =>
  `ON CONFLICT (${key}) DO UPDATE SET ${changes.join(", ")}`;

const REASON = "desk_id, reason_id, key_id";

export const merging = {
  buckets: onConflict(
    "desk_id, width_ms, start, key_id",
    ...["stored", "duplicate", "rejected", "unauthorized"].map(sum),
    latest("last_at"),
  ),
  reject_reasons: onConflict(
    REASON,
    sum("count"),
    earliest("first_at"),
    latest("last_at"),
    latest("latest_id"),
  ),
  rejects: onConflict(`${REASON}, request_id`, latest("at")),
  reject_counts: onConflict(`${REASON}, width_ms, start`, sum("count")),
  differing: onConflict(
    "desk_id, signal_id, key_id",
    sum("count"),
    union("fields"),
    latest("last_at"),
  ),
  repeats: onConflict(
    "desk_id, signal_id",
    sum("duplicates"),
    sum("differing"),
    union("differs"),
    latest("last_at"),
  ),
} as const;
