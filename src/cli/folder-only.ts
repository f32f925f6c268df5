/** Refuses for PostgreSQL what is for a database in a data folder. */
import { UsageError } from "../lib/errors.ts";
import { isStoreUrl, placeName } from "../lib/place.ts";

/** `what`: the subject of a sentence. `where`: as `store/open.ts` takes it. `instead`: what to do. Throws `UsageError`. */
export function refuseStore(
  what: string,
  where: string,
  instead = (place: string) =>
    `back up ${place} with PostgreSQL's own tools: pg_dump, or pgBackRest or Barman for point-in-time recovery (PITR)`,
): void {
  if (!isStoreUrl(where)) return;
  throw new UsageError(`${what} is for a database in a data folder: ${instead(placeName(where))}.`);
}
